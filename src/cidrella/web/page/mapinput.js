// How people get at the map: pointer, wheel, fingers, keys, buttons.
//
// The wheel scrolls the page, as everywhere, until the map has the keyboard's focus (a click will do) or Ctrl is held.

const DRAG = 5; // pixels from which a press is no click
const ZOOM_STEP = 1.6;
const WHEEL = 0.0022;
const LINE = 20; // pixels for each line of a wheel that counts lines

export function listen(map, buttons, { details, leave }) {
  const { overlay } = map;
  const at = (event) => {
    const box = overlay.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  listenToPointers(map, at, details);
  overlay.addEventListener("dblclick", (event) => {
    const { x, y } = at(event);
    map.camera.zoom(ZOOM_STEP * 1.5, x, y, true);
  });
  overlay.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== overlay) return;
      event.preventDefault();
      const { x, y } = at(event);
      const delta = event.deltaMode ? event.deltaY * LINE : event.deltaY;
      map.camera.zoom(Math.exp(-delta * WHEEL * (event.ctrlKey ? 3 : 1)), x, y);
    },
    { passive: false },
  );
  overlay.addEventListener("keydown", (event) => key(event, map, details, leave));
  overlay.addEventListener("blur", () => map.unpoint());
  buttons.closer.addEventListener("click", () => map.camera.zoom(ZOOM_STEP, undefined, undefined, true));
  buttons.farther.addEventListener("click", () => map.camera.zoom(1 / ZOOM_STEP, undefined, undefined, true));
  buttons.all.addEventListener("click", () => map.camera.reset());
}

function listenToPointers(map, at, details) {
  const { overlay, camera } = map;
  const down = new Map(); // pointer → where it is
  let dragged = false;
  let start = null;

  overlay.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    down.set(event.pointerId, at(event));
    overlay.setPointerCapture(event.pointerId);
    start = at(event);
    dragged = down.size > 1;
  });
  overlay.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") map.point(now.x, now.y);
      return;
    }
    if (down.size === 2) pinch(camera, down, event.pointerId, now);
    else if (dragged || Math.hypot(now.x - start.x, now.y - start.y) > DRAG) {
      dragged = true;
      camera.pan(before.x - now.x, before.y - now.y);
    }
    down.set(event.pointerId, now);
  });
  overlay.addEventListener("pointerup", (event) => {
    const here = down.delete(event.pointerId) && at(event);
    if (!here || dragged || down.size) return;
    overlay.focus({ preventScroll: true });
    const thing = map.thingAt(here.x, here.y);
    map.choose(thing);
    if (thing) details({ focus: false });
  });
  overlay.addEventListener("pointercancel", (event) => down.delete(event.pointerId));
  overlay.addEventListener("pointerleave", () => map.unpoint());
}

/** Two fingers: what is between them stays there, and grows as they part. */
function pinch(camera, down, moving, now) {
  const [, other] = [...down].find(([id]) => id !== moving);
  const before = down.get(moving);
  const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
  const apart = (point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
  camera.pan((before.x - now.x) / 2, (before.y - now.y) / 2);
  camera.zoom(apart(now) / apart(before), middle.x, middle.y);
}

const PANS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function key(event, map, details, leave) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const done =
    event.shiftKey && PANS[event.key]
      ? (map.pan(...PANS[event.key]) ?? true)
      : plainKey(event.key, map, details, leave);
  if (done) event.preventDefault();
}

/** Returns whether the key means something here. */
function plainKey(name, map, details, leave) {
  switch (name) {
    case "ArrowRight":
      map.walk(1);
      return true;
    case "ArrowLeft":
      map.walk(-1);
      return true;
    case "ArrowDown":
      map.walkRanges(1);
      return true;
    case "ArrowUp":
      map.walkRanges(-1);
      return true;
    case "Home":
      map.walkToEnd(-1);
      return true;
    case "End":
      map.walkToEnd(1);
      return true;
    case "+":
    case "=":
      map.camera.zoom(ZOOM_STEP, undefined, undefined, true);
      return true;
    case "-":
    case "_":
      map.camera.zoom(1 / ZOOM_STEP, undefined, undefined, true);
      return true;
    case "0":
      map.camera.reset();
      return true;
    case "Enter":
    case " ":
      if (map.chosen) details({ focus: true });
      return true;
    case "Escape":
      leave();
      return true;
    default:
      return false;
  }
}
