// `learn` of po-model-free (see learners.po_model_free): the rows of the episode and no others, a step to a lane.
//
// Of each (h, s): the baseline, the accumulated second moment, the largest residual, and the number of visits.  A row
// never visited holds what the CPU gives to a new one.

#define BASELINE 0
#define SECOND 1
#define LARGEST 2
#define VISITS 3
#define BASELINE_RATE ((real)0.01)

__device__ __forceinline__ void learn(const Arguments& my, const Place& at, real total) {
    for (int h = at.j; h < H; h += GROUP)
        if (!at.idle) at.told[h] = my.loss[(at.r * H + h) * (S * A) + at.visited[h]];
    __syncwarp();
    real surprise = total;
    for (int h = 0; h < H; ++h) surprise -= at.told[h];
    for (int h = at.j; h < H; h += GROUP) {
        if (at.idle) continue;
        real past = 0;
        for (int before = 0; before < h; ++before) past += at.told[before];
        const int s = at.visited[h] / A, a = at.visited[h] - s * A;
        real* policy_row = row_of(my, at, 0, h, s);
        real* marks = my.marks + ((at.r * H + h) * S + s) * MARKS;
        my.loss[(at.r * H + h) * (S * A) + at.visited[h]] = at.told[h] + MODEL_RATE * surprise / (real)H;
        const real rest = total - past, visits = marks[VISITS];
        const real baseline = visits == 0 ? rest : marks[BASELINE];  // the first visit sets the mark and moves nothing
        const real residual = rest - baseline;
        marks[BASELINE] = baseline + greater_of((real)1 / (visits + (real)1), BASELINE_RATE) * residual;
        marks[VISITS] = visits + (real)1;
        const real now = policy_row[a * BETWEEN], keep = (real)my.keep;
        const real estimate = residual / (now + (real)my.exploration);
        const real second = keep * marks[SECOND] + now * estimate * estimate;
        const real largest = greater_of(keep * marks[LARGEST], residual < 0 ? -residual : residual);
        marks[SECOND] = second;
        marks[LARGEST] = largest;
        improve_row(my, my.score + ((at.r * H + h) * S + s) * A, policy_row, a, estimate, second, largest);
    }
    __syncwarp();
}
