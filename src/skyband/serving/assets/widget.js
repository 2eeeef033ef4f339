// The widget of session.live(): the board and the skyband in a notebook. The kernel sends what the server would.
function render({ model, el }) {
  el.classList.add("skyband-widget");
  const list = element("ol", { class: "board" }), canvas = element("canvas"), head = element("h2"), note = element("p", { class: "note" });
  el.append(element("div", { class: "widget-board" }, head, list), element("div", { class: "widget-picture" }, canvas, note));
  useColoursOf(el);
  const board = new Leaderboard(list, null);
  let picture = null; // it is known with the first answer what draws it
  const answer = () => {
    const { about, rows, note: said } = model.get("answer");
    if (!about) return;
    head.textContent = about.title;
    note.textContent = said;
    canvas.hidden = !about.picture;
    board.show(rows.slice(0, 20), about.identity);
  };
  const dots = () => {
    const data = model.get("picture");
    if (!data.dots) return;
    picture ??= data.form === "lanes" ? new Lanes(canvas, () => {}) : new Picture(canvas, () => {});
    picture.take(data);
  };
  model.on("change:answer", answer);
  model.on("change:picture", dots);
  answer();
  dots();
  let running = true;
  let frames = 0; // a notebook may change its theme
  const animate = () => { if (!running) return; if (++frames % 60 === 0) forgetColours(); if (!canvas.hidden && canvas.clientWidth) picture?.draw(); requestAnimationFrame(animate); };
  requestAnimationFrame(animate);
  return () => { running = false; };
}

export default { render };
