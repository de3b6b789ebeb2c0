"""Mutations of the learners that the paper compares with or builds on, for tools/mutate.py: a constant or a sign of a
specification at a time.

By file below src/aggbandit and the tests that should notice, what the file says and what it is made to say.
"""

MUTATIONS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("learners/exp2.py", "learners/test_exp2.py"): [
        ("+ exploration * exploration_n", "+ exploration / len(exploration_n)"),
        ("z_nd[chosen] * total)", "z_nd[chosen] * total / 2)"),
        ("sqrt(log(N) / (3.0 * d * K)) / H", "sqrt(log(N) / (2.0 * d * K)) / H"),
    ],
    ("learners/parts/optimal_design.py", "learners/parts/test_optimal_design.py"): [
        ("if g_n[up] <= d * (1.0 + gap):", "if g_n[up] <= 1.2 * d * (1.0 + gap):"),
        ("max(length, -w_n[j] / (1.0 - w_n[j]))", "length"),
    ],
    ("learners/parts/deterministic_policies.py", "learners/parts/test_deterministic_policies.py"): [
        ("np.where(reach_ns[:, s] > 0.0, A, 1)", "np.full(len(reach_ns), A)"),
    ],
    ("learners/parts/polytope_sampling.py", "learners/parts/test_polytope_sampling.py"): [
        ("while any(replace(i, ratio) for i in range(d)):\n        pass", ""),
        ("np.where(mirrored_c, 1.0 - uniform_c, uniform_c)", "uniform_c"),
        ("truncated_exponential(direction_cn @ cost_n,", "truncated_exponential(0.0 * direction_cn @ cost_n,"),
    ],
    ("learners/volumetric.py", "learners/test_volumetric.py"): [
        ("state.played_n, episode.total / problem.H)", "state.played_n, episode.total)"),
        ("gram_dd = (z_id * law_i[:, None]).T @ z_id", "gram_dd = z_id.T @ z_id / len(z_id)"),
        ("(4.0 * sqrt(d) + log(2.0 * K)) ** 2", "(4.0 * sqrt(d) + log(2.0 * K))"),
        ("10 * m * m if", "m if"),
        (
            "pool_cm = sampling.hit_and_run(state.shape, cost_n, pool_cm",
            "pool_cm = sampling.hit_and_run(state.shape, state.cost_n, pool_cm",
        ),
    ],
    ("learners/scrible.py", "learners/test_scrible.py"): [
        ("step_size * m * episode.total * state.pull_hsa", "step_size * episode.total * state.pull_hsa"),
        ("polytope.policy_of(x_hsa + step_hsa)", "polytope.policy_of(x_hsa - step_hsa)"),
        ("sqrt(theta * log(K) / K) / (m * H), 0.5 / (m * H)", "sqrt(theta * log(K) / K) / (m * H), 1.0 / (m * H)"),
        ("(direction / x).reshape", "direction.reshape"),
    ],
    ("learners/dlb.py", "learners/test_dlb.py"): [
        ("epsilon_hsa: FloatArray = lower_hsas.shape[0] *", "epsilon_hsa: FloatArray = 0.5 * lower_hsas.shape[0] *"),
        ("- self.boost_scale * 2.0 * m * distortion", "- self.boost_scale * m * distortion"),
        ("weight = m * total / inverse_step", "weight = total / inverse_step"),
        ("(now >= np.maximum(self.growth * before, 1.0)).any()", "(now > np.maximum(self.growth * before, 1.0)).any()"),
        ("max(float(H), (H - 1) * float((", "max(float(H), float(("),
        ("least = 2.0 * max(m, 1) * H", "least = 0.0"),
        ("return min(step_size, 0.5 / (max(m, 1) * problem.H))", "return step_size"),
        (
            "box_polytope.occupancy(point) + box_polytope.occupancy(step)",
            "box_polytope.occupancy(point) - box_polytope.occupancy(step)",
        ),
        ("np.minimum(2.0, (upper_hsas", "np.minimum(9.0, (upper_hsas"),
        ("np.maximum(self.growth * counts_hsas", "np.maximum(counts_hsas"),
        (
            "return _play_known(problem, open_hs, state.x_hsa, state.cost_hsa + weight",
            "return _play_known(problem, open_hs, state.x_hsa, state.cost_hsa - weight",
        ),
    ],
    ("learners/parts/box_polytope.py", "learners/parts/test_box_polytope.py"): [
        ("share_hsai = (upper_hsas[:-1] - lower_hsai) / rest_hsa", "share_hsai = upper_hsas[:-1] / rest_hsa"),
        (
            "return int(A * S * open_h[:-1].sum() + A * open_h[-1] - open_h.sum())",
            "return int(A * S * open_h[:-1].sum() + A * open_h[-1] - open_h.sum() + 1)",
        ),
    ],
    ("learners/oful_trajectory.py", "learners/test_oful_trajectory.py"): [
        ("- beta * np.sqrt(np.maximum(squared_widths_n, 0.0))", "+ beta * np.sqrt(np.maximum(squared_widths_n, 0.0))"),
        ("along_n**2 / (1.0 + float(feature_d @ direction_d))", "along_n**2"),
    ],
    ("learners/ts_trajectory.py", "learners/test_ucbvi_ts.py"): [
        (
            "drawn_d = (\n            least_squares.solution(seen) + v *",
            "drawn_d = (\n            least_squares.solution(seen) - v *",
        ),
    ],
    ("learners/ucbvi_ts.py", "learners/test_ucbvi_ts.py"): [
        ("drawn_d.reshape(problem.shape) - bonus_hsa", "drawn_d.reshape(problem.shape) + bonus_hsa"),
        (
            "drawn_d.reshape(problem.shape) - bonus_hsa)",
            "np.clip(drawn_d.reshape(problem.shape) - bonus_hsa, -3.0, 3.0))",
        ),
    ],
    ("learners/rs_ucbvi_ts.py", "learners/test_ucbvi_ts.py"): [
        ("v = self.v_scale * sqrt(1.0 + self.growth) * renewed.radius", "v = self.v_scale * renewed.radius"),
        (">= (1.0 + self.growth) * renewed.visits_hsa[met]", "> (1.0 + self.growth) * renewed.visits_hsa[met]"),
        ("if log_det > renewed.log_det + log(1.0 + self.growth) or more.any()", "if more.any()"),
        ("least_squares.spread(renewed.root", "least_squares.spread(seen"),
        ("* renewed.radius", "* self._radius(problem, seen)"),
        ("greedy_policy(renewed.mean_hsas", "greedy_policy(model.mean_hsas"),
    ],
    ("learners/parts/least_squares.py", "learners/parts/test_least_squares.py"): [
        ("sqrt(max(log_det, 0.0) + 2.0 * log(1.0 / confidence))", "sqrt(max(log_det, 0.0) + log(1.0 / confidence))"),
        ('"independent": sqrt(H) / 2.0', '"independent": sqrt(H)'),
    ],
    ("kernels/cholesky.py", "learners/parts/test_least_squares.py"): [
        ("feature_d[i] = cosine * below - sine * above", "feature_d[i] = below - sine * above"),
        ("        _back(root_dd, normal_md[m])", "        solve(root_dd, normal_md[m])"),
    ],
    ("learners/parts/empirical_model.py", "learners/parts/test_empirical_model.py"): [
        ("np.full((H, S, A, S), 1.0 / S)", "np.zeros((H, S, A, S))"),
        ("log(4.0 * H * S * A * K / confidence)", "log(2.0 * H * S * A * K / confidence)"),
    ],
    ("learners/re_lsvi.py", "learners/test_re_lsvi_and_repo.py"): [
        ("int(np.argmin(value_m))", "int(np.argmax(value_m))"),
        ("noise_md *= self.v_scale * radius", "noise_md *= self.v_scale"),
    ],
    ("learners/parts/ensembles.py", "learners/test_re_lsvi_and_repo.py"): [
        ("H - episode.total)", "episode.total)"),
        ("ceil(9.0 * log(7.0 * K / confidence))", "ceil(9.0 * log(K / confidence))"),
        ("sigma, confidence / 6.0)", "sigma, confidence)"),
        ("3.0 * problem.H * (1.0 + radius)", "problem.H * (1.0 + radius)"),
    ],
    ("learners/repo.py", "learners/test_re_lsvi_and_repo.py"): [
        ("state.hedge_m[:] -= hedge_step * value_m", "state.hedge_m[:] += hedge_step * value_m"),
        ("if doubled(problem, state.known, state.epoch):", "if False:"),
        ("epoch.log_det_h + log(2.0)", "epoch.log_det_h + log(3.0)"),
    ],
    ("kernels/ensemble.py", "kernels/test_ensemble_kernels.py learners/test_re_lsvi_and_repo.py"): [
        ("here_s[s] = min(max(value, -limit), limit)", "here_s[s] = value"),
    ],
    ("learners/parts/linear_mdp.py", "learners/test_re_lsvi_and_repo.py learners/parts/test_linear_mdp.py"): [
        ("if (left > EXPRESSED).any():", "if (left > 1.0).any():"),
        ("if (norms_sa > 1.0 + NORM_TOLERANCE).any():", "if (norms_sa > 2.0).any():"),
    ],
    ("learners/po_dilated.py", "learners/test_po_dilated.py"): [
        ("1.0 + 1.0 / H if self.dilation is None", "1.0 if self.dilation is None"),
        ("episode.losses[::-1].cumsum()[::-1]", "np.full(H, episode.losses.sum())"),
        ("H * (3.0 * exploration + greatest_hsa - least_hsa)", "H * (2.0 * exploration + greatest_hsa - least_hsa)"),
        ("estimate_hsa = -bonus_hsa", "estimate_hsa = bonus_hsa"),
        ("1.0 / (24.0 * H**3)", "1.0 / (2.0 * H**3)"),
        ("linear=28.0 / 3.0", "linear=14.0 / 3.0"),
    ],
    ("learners/dapo.py", "learners/test_dapo.py"): [
        ("exploration, 2.0 * self.width_scale", "exploration, self.width_scale"),
        ("ratio_hsa[met] * told_h", "told_h"),
        ("state.policy_hsa * ratio_hsa, least_hsa", "played_hsa * ratio_hsa, least_hsa"),
        ("H**4 * (K + self.total_delay)", "H**4 * K"),
        ("lowered = paper * greatest_bonus > 1.0", "lowered = False"),
        ("paper, width = paper * H, 2.0 * self.width_scale", "paper = paper * H"),
        ("told_h = np.full(H, episode.total)", "told_h = np.full(H, episode.total) / H"),
    ],
    ("learners/uob_reps.py", "learners/test_uob_reps.py"): [
        ("(greatest_h * policy_hsa[met] + exploration)", "(greatest_h * policy_hsa[met])"),
        ("less=1.0,", "less=0.0,"),
        ("log(H * H * S * A / self.confidence)", "log(H * S * A / self.confidence)"),
    ],
    ("learners/parts/plausible_kernels.py", "learners/test_uob_reps.py learners/test_pomd.py"): [
        (
            "upper = np.where(visits_hsa == 0.0, 1.0, np.minimum(1.0, mean + radius))",
            "upper = np.minimum(1.0, mean + radius)",
        ),
    ],
    ("learners/parts/epochs.py", "learners/test_uob_reps.py learners/parts/test_epochs.py"): [
        ("np.maximum(1.0, 2.0 * epochs.begun_hsa[met])", "np.maximum(1.0, 3.0 * epochs.begun_hsa[met])"),
    ],
    ("learners/uc_o_reps.py", "learners/test_uc_o_reps.py"): [
        ("else balanced / H", "else balanced / (H * H)"),
        ("self._step(problem) * episode.table)", "self._step(problem) * episode.table * 0.9)"),
    ],
    ("learners/parts/kernel_balls.py", "learners/test_uc_o_reps.py"): [
        ("np.sqrt(2.0 * S * log_term", "np.sqrt(S * log_term"),
    ],
    ("learners/bandit_uc_o_reps.py", "learners/test_bandit_uc_o_reps.py"): [
        ("np.maximum(played_h, self.floor)", "(played_h + self.floor)"),
        ("log((H * S) ** 2 * A) / (S * A *", "log((H * S) ** 2 * A) / (H * S * A *"),
    ],
    ("learners/o_reps.py", "learners/test_o_reps.py"): [
        ("variance = 1 if self.feedback == FULL else S * A", "variance = S * A"),
        ("sqrt(log(S * A) / (variance", "sqrt(log(S) / (variance"),
        (
            "weight_h = state.q.reach_hs[met[:2]] * state.policy_hsa[met] + self.exploration",
            "weight_h = state.policy_hsa[met] + self.exploration",
        ),
    ],
    ("kernels/kl_projection.py", "learners/parts/test_relative_entropy.py"): [
        ("mass = sign * 0.5 * radius", "mass = sign * radius"),
        ("                if below >= above and", "                if"),
        ("        keep_alive(k_hsat[: H - 1])\n", ""),
        (
            "log_policy_hsa[h, s, a] -= cost_hsa[h, s, a] + g_hsa[h, s, a]",
            "log_policy_hsa[h, s, a] -= cost_hsa[h, s, a]",
        ),
        ("_LAST_STEP = 1e-6", "_LAST_STEP = 1e-1"),
    ],
    ("learners/parts/centred_estimates.py", "learners/parts/test_centred_estimates.py"): [
        ("cost_hsa[steps, states] -= (c / reach_h[met])[:, None]", "cost_hsa[steps, states] -= c"),
        ("cost_hsa -= (1.0 - policy_hsa) + bonus_hsa", "cost_hsa -= bonus_hsa"),
        ("(1.0 - share_ha - c)", "(1.0 - c)"),
        ("float(K) ** 4)", "float(K) ** 3)"),
        ("14.0 / 3.0 * ratio", "7.0 / 3.0 * ratio"),
        ("np.minimum(2.0, radius_hsas.sum(axis=-1))", "radius_hsas.sum(axis=-1)"),
    ],
    ("learners/ftrl_tsallis.py", "learners/test_ftrl.py"): [
        (
            "return 2.0 * sqrt(episodes) / self.step_scale, 2.0 * self.beta_scale",
            "return sqrt(episodes) / self.step_scale, 2.0 * self.beta_scale",
        ),
        ("1024.0 * problem.H * self.beta_scale", "512.0 * problem.H * self.beta_scale"),
        ("episodes = state.episodes + 1", "episodes = state.episodes"),
        ("self.bonus_scale * state.known.width_hsa", "state.known.width_hsa"),
    ],
    ("learners/ftrl_logbarrier.py", "learners/test_ftrl.py"): [
        ("first * first + charged / log(K)", "first + charged / log(K)"),
        ("first * first + charged / log(K)", "first * first + charged"),
    ],
    ("kernels/barrier_newton.py", "learners/parts/test_occupancy_polytope.py"): [
        ("half = 0.5 * root / np.sqrt(x)", "half = root / np.sqrt(x)"),
        ("                x_hsa[h, s, a] *= scale\n", "                pass\n"),
        ("_LAST_STEP = 1e-5", "_LAST_STEP = 1e-2"),
        ("concordance = np.sqrt(min(1.0, least_log))", "concordance = 1.0"),
    ],
    ("kernels/barrier_newton.py", "learners/parts/test_box_polytope.py"): [
        ("gradient = cost_hsai[h, s, a, i] - 1.0 / m", "gradient = cost_hsai[h, s, a, i] - 2.0 / m"),
        ("out_pull_m[h, s, a, i] -= n", "pass"),
    ],
    ("learners/mdp_e.py", "learners/test_mdp_e.py"): [
        ("sqrt(2.0 * log(A) /", "sqrt(log(A) /"),
    ],
    ("learners/pomd.py", "learners/test_pomd.py"): [
        ("bonus_hsa[:-1] += H * np.sqrt", "bonus_hsa[:-1] += np.sqrt"),
        ("log(6.0 * S * A * H * K / confidence) / n_hsa", "log(6.0 * S * A * H * K / confidence) / (2.0 * n_hsa)"),
        ("4.0 * S * log(9.0 * S", "2.0 * S * log(9.0 * S"),
        ("problem.A**-0.5 *", "problem.A**0.5 *"),
        ("state.losses.mean_hsa - b_hsa", "state.losses.mean_hsa + b_hsa"),
        (
            "lower, upper, state.policy_hsa, estimate_hsa, greatest=False",
            "lower, upper, state.policy_hsa, estimate_hsa, greatest=True",
        ),
        ("np.maximum(loss_hsa[h] + ahead_sa, 0.0, out=q_hsa[h])", "np.add(loss_hsa[h], ahead_sa, out=q_hsa[h])"),
        ("K ** (2.0 / 3.0)", "K ** 0.5"),
    ],
    ("learners/oppo.py", "learners/test_oppo.py"): [
        ("np.clip(guess_sa, 0.0, H - h, out=q_hsa[h])", "np.clip(guess_sa, 0.0, H, out=q_hsa[h])"),
        ("along_i / (1.0 + along_i @ v_i)", "along_i / (1.0 + along_i @ along_i)"),
        ("state.log_weights_hsa, -q_hsa, step_size", "state.log_weights_hsa, q_hsa, step_size"),
        (
            "T, d = H * problem.require_episodes(self.name), S * S * A",
            "T, d = H * problem.require_episodes(self.name), S * A",
        ),
        ("v_hs[h + 1] * v_hs[h + 1, episode.states[h + 1]]", "v_hs[h + 1] * v_hs[h + 1, episode.states[h]]"),
        ("1.0 - episode.table, beta", "episode.table, beta"),
    ],
    ("kernels/optimistic_greedy.py", "learners/test_ucbvi.py"): [
        (
            "q_hsa[h, s, a] = min(q_hsa[h, s, a], guess + bonus_scale * bonus)",
            "q_hsa[h, s, a] = guess + bonus_scale * bonus",
        ),
        ("bonus += np.sqrt(8.0 * unsure / n)", "pass"),
        ("1e4 * H**3 * S**2", "1e4 * H**2 * S**2"),
        ("14.0 * H * log_term / (3.0 * n)", "7.0 * H * log_term / (3.0 * n)"),
        ("np.sqrt(8.0 * log_term * variance / n)", "np.sqrt(2.0 * log_term * variance / n)"),
        ("np.sqrt(noise_log / (2.0 * n))", "np.sqrt(noise_log / n)"),
        ("bonus += 7.0 * H * log_term / np.sqrt(n)", "bonus += 7.0 * H * np.sqrt(log_term / n)"),
    ],
    ("kernels/optimistic_greedy.py", "learners/test_ucrl2.py"): [
        ("min(0.5 * radius_hsa[h, s, a],", "min(radius_hsa[h, s, a],"),
    ],
    ("learners/ucrl2.py", "learners/test_ucrl2.py"): [
        ("7.0 * log(2.0 * H * A * steps / confidence)", "log(2.0 * H * A * steps / confidence)"),
        ("np.maximum(1.0, 2.0 * begun_hsa[met])", "np.maximum(1.0, begun_hsa[met])"),
        ("sqrt(3.5 * log(2.0 * H", "sqrt(7.0 * log(2.0 * H"),
        ("1.0 - losses.mean_hsa + width_hsa", "losses.mean_hsa + width_hsa"),
    ],
    ("learners/ucb_h.py", "learners/test_ucb_h.py"): [
        ("rate_h = (H + 1.0) / (H + t_h)", "rate_h = 1.0 / t_h"),
        ("self.constant * sqrt(H**3 * iota)", "self.constant * sqrt(H**2 * iota)"),
        ("1.0 - episode.losses + ahead_h", "episode.losses + ahead_h"),
        ("np.minimum(state.q_hsa[places][1:].max(axis=-1), H)", "state.q_hsa[places][1:].max(axis=-1)"),
    ],
    ("learners/reinforce.py", "learners/test_reinforce.py"): [
        ("score_ha = np.eye(A)[actions] - policy_hsa", "score_ha = np.eye(A)[actions] - 0.5 * policy_hsa"),
        ("theta_hsa[places] -= self.step_size / problem.H", "theta_hsa[places] -= self.step_size"),
        ("totals[0] / totals[1]", "totals[0] / (totals[1] + 1.0)"),
    ],
    ("learners/natural_pg.py", "learners/test_natural_pg.py"): [
        ("np.divide(totals_hsa - baseline * visits_hsa, below", "np.divide(totals_hsa - baseline, below"),
        ("out=w_hsa, where=below_hsa > 0.0)", "out=w_hsa)"),
        ("below_hsa = np.maximum(met_hs, 1.0) *", "below_hsa = np.maximum(visits_hsa, 1.0) *"),
        ("self.step_size / problem.H)", "self.step_size)"),
    ],
    ("learners/ppo_tabular.py", "learners/test_ppo_tabular.py"): [
        (
            "np.where(advantage_n[:, None] > 0.0, ratio_nh > 1.0 + clip, ratio_nh < 1.0 - clip)",
            "(ratio_nh > 1.0 + clip) | (ratio_nh < 1.0 - clip)",
        ),
        ("    gradient_hsa -= policy_hsa * gradient_hsa.sum(axis=-1, keepdims=True)\n", ""),
        ("(state.totals_n.mean() - state.totals_n) / spread", "(state.totals_n.mean() - state.totals_n)"),
    ],
    ("learners/mc_control.py", "learners/test_mc_control.py"): [
        (
            "(episode.total - state.value_hsa[met]) / state.visits_hsa[met]",
            "0.1 * (episode.total - state.value_hsa[met])",
        ),
        (
            "epsilon_greedy(state.value_hsa[places], self.exploration)",
            "epsilon_greedy(-state.value_hsa[places], self.exploration)",
        ),
    ],
    ("learners/q_learning_shared.py", "learners/test_q_learning_shared.py"): [
        ("episode.total / H + ahead_h", "episode.total + ahead_h"),
        ("rate_h = (H + 1.0) / (H + state.visits_hsa[met])", "rate_h = 1.0 / state.visits_hsa[met]"),
        ("[1:].min(axis=-1), 0.0)", "[1:].max(axis=-1), 0.0)"),
    ],
    ("learners/doubling.py", "learners/test_doubling.py"): [
        ("if state.done + 1 < 2**state.run:", "if state.done < 2**state.run:"),
        ("return dataclasses.replace(self.inner.needs, late_feedback=False)", "return self.inner.needs"),
    ],
    ("kernels/extreme_values.py", "learners/test_po_dilated.py learners/test_pomd.py"): [
        ("q += factor * extreme_mean(", "q += extreme_mean("),
        ("sort_states(scratch_next_s, sign, scratch_order_s)", "sort_states(scratch_next_s, 1.0, scratch_order_s)"),
        ("value += policy_hsa[h, s, a] * q", "value += q / A"),
    ],
    ("learners/parts/relative_entropy.py", "learners/parts/test_relative_entropy.py"): [
        ("np.log(q.reach_hs / A, out", "np.log(q.reach_hs**2, out"),
    ],
    ("learners/parts/softmax.py", "learners/test_mdp_e.py"): [
        ("log_weights_hsa -= step_size * loss_hsa", "log_weights_hsa += step_size * loss_hsa"),
    ],
    ("learners/parts/ties.py", "learners/test_mc_control.py learners/test_ucb_h.py"): [
        ("ROUNDING = 1e-9", "ROUNDING = 1e-1"),
        ("exploration / value_xa.shape[-1]", "exploration / 2.0"),
    ],
    ("learners/parts/loss_counts.py", "learners/test_ucbvi.py"): [
        ("seen.mean_hsa[met]) / seen.visits_hsa[met]", "seen.mean_hsa[met]) / (seen.visits_hsa[met] + 1.0)"),
    ],
    ("simulation/engines/plain.py", "simulation/test_run.py"): [
        ("if due < self._delays.size:", "if True:"),
        ("due = episode.index + int(self._delays[episode.index])", "due = episode.index + 1"),
        ('self._late = [{} for _ in state["late"]]', "return"),
    ],
    ("simulation/run.py", "simulation/test_run.py"): [
        ("np.broadcast_to(np.minimum(given, np.int64(K)), (K,))", "np.broadcast_to(given, (K,))"),
    ],
    ("simulation/protocol.py", "simulation/test_protocol.py"): [
        ("table=frozen(table.copy())", "table=frozen(table)"),
    ],
}
