(() => {
  "use strict";
  const { config, sections } = JSON.parse(document.getElementById("data").textContent);
  const text = (value, digits = 0) =>
    value
      .toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })
      .replaceAll(",", "\u202f")
      .replace("-", "\u2212");
  const decimals = (value, significant) =>
    value === 0 ? 0 : Math.max(0, significant - 1 - Number(value.toExponential(significant - 1).split("e")[1]));
  // As many decimals as two digits of the band ask for, like the tables.
  const told = (mean, half, unit = "") => {
    if (half === null || !(half > 1e-9 * Math.abs(mean))) {
      return text(mean, decimals(mean, 4)) + (half === null ? "" : " ± 0") + unit;
    }
    const digits = decimals(half, 2);
    return text(mean, digits) + " ± " + text(half, digits) + unit;
  };

  // One row a checkpoint, from columns.  null is "no value" for JSON, for Vega and here.
  const rowsOf = (curve) =>
    curve.k.map((k, i) => {
      const mean = curve.mean[i];
      const half = curve.half === null ? null : curve.half[i];
      const root = Math.sqrt(k);
      const base = curve.base === null ? null : curve.base[i];
      const shared = base !== null && base > 0;
      return {
        key: curve.key, learner: curve.label, race: curve.race, k, mean,
        low: half === null ? null : mean - half,
        high: half === null ? null : mean + half,
        root: mean / root,
        rootLow: half === null ? null : (mean - half) / root,
        rootHigh: half === null ? null : (mean + half) / root,
        share: shared ? mean / base : null,
        shareLow: shared && half !== null ? (mean - half) / base : null,
        shareHigh: shared && half !== null ? (mean + half) / base : null,
        kText: text(k),
        regretText: told(mean, half),
        rootText: told(mean / root, half === null ? null : half / root),
        shareText: shared ? told((100 * mean) / base, half === null ? null : (100 * half) / base, " %") : "–",
      };
    });

  const ERRORS = 1; // Vega's level: with all curves hidden a chart has no extent, which it would warn of
  const options = { config, actions: false, renderer: "svg", logLevel: ERRORS, tooltip: { theme: "aggbandit" } };
  const [TITLE, LINE] = [40, 34];
  const jobs = [];
  sections.forEach((section, index) => {
    const host = document.getElementById("section-" + index);
    const curves = section.curves.flatMap(rowsOf);
    const onLog = curves.filter((row) => row.mean > 0).map((row) => ({
      ...row, low: row.low === null ? null : Math.max(row.low, row.mean / 10),
    }));
    const fits = section.curves.flatMap((curve) => curve.fit.map(([k, fit]) => ({ key: curve.key, k, fit })));
    const views = [];
    for (const [id, spec] of Object.entries(section.specs)) {
      spec.datasets = { curves: id === "loglog" ? onLog : curves, fits, times: section.times };
      const place = host.querySelector(`[data-view="${id}"] .chart`);
      jobs.push(vegaEmbed(place, spec, options).then((embedded) => views.push({ id, view: embedded.view })));
    }
    const buttons = [...host.querySelectorAll(".legend button[data-key]")];
    const update = () => {
      const shown = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.key);
      return Promise.all(views.map(({ id, view }) => {
        if (id === "time" && shown.length) view.height(TITLE + LINE * shown.length); // a line each, as in charts.py
        return view.signal("shown", shown).runAsync();
      }));
    };
    const redraw = () => {
      document.body.dataset.drawn = "false";
      update().then(() => { document.body.dataset.drawn = "true"; });
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
        redraw();
      });
    }
    for (const all of host.querySelectorAll(".legend button[data-keys]")) {
      const keys = all.dataset.keys.split(" ");
      all.addEventListener("click", () => {
        for (const one of buttons.filter((button) => keys.includes(button.dataset.key))) {
          one.setAttribute("aria-pressed", all.dataset.to);
        }
        redraw();
      });
    }
  });
  Promise.all(jobs).then(() => { document.body.dataset.drawn = "true"; });
})();
