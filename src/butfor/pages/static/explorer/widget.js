// The explorer inside a notebook: questions and answers travel as messages of the widget.

function render({ model, el }) {
  const waiting = new Map();
  let last = 0;
  const hear = (message) => {
    const done = waiting.get(message.id);
    if (!done) return;
    waiting.delete(message.id);
    if (message.error) done.reject(new Error(message.error));
    else done.resolve(message.answer);
  };
  const askWidget = (verb, body) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      model.send({ id: last, verb, body });
    });
  model.on("msg:custom", hear);
  const place = document.createElement("div");
  place.className = "butfor-widget";
  el.replaceChildren(place);
  explorer(place, model.get("opened"), askWidget);
  return () => model.off("msg:custom", hear);
}

export default { render };
