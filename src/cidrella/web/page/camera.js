// What part of the picture is looked at: screen = (world - corner) * scale. Moves at once or, where motion is welcome,
// in a short flight.

const FARTHEST = 1;
const CLOSEST = 2 ** 38; // beyond, numbers have no digits left to tell pixels apart
const FLIGHT = 450; // milliseconds

export class Camera {
  /** `moved` is called after each change. */
  constructor(moved) {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.width = 1;
    this.height = 1;
    this.covered = 0; // pixels at the right that something else lies on
    this.moved = moved;
    this.flight = 0;
    this.landing = null; // where a flight goes: { x, y, scale }
  }

  /** The middle of what is seen, on the screen. */
  get middle() {
    return { x: (this.width - this.covered) / 2, y: this.height / 2 };
  }

  /** Where it is, or will be in a moment: what is asked for in a flight is asked of where that goes. */
  get bound() {
    return this.landing ?? this;
  }

  get zoomed() {
    return this.scale > 1.001;
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.settle(this.x, this.y, this.scale);
  }

  toScreen(rect, { x, y, scale } = this) {
    return { x: (rect.x - x) * scale, y: (rect.y - y) * scale, w: rect.w * scale, h: rect.h * scale };
  }

  toWorld(x, y) {
    return { x: this.x + x / this.scale, y: this.y + y / this.scale };
  }

  /** Zoom by a factor; what is at a point of the screen stays there. */
  zoom(factor, x = this.middle.x, y = this.middle.y, smoothly = false) {
    const from = smoothly ? this.bound : this;
    const scale = Math.min(Math.max(from.scale * factor, FARTHEST), CLOSEST);
    this.go(from.x + x / from.scale - x / scale, from.y + y / from.scale - y / scale, scale, smoothly);
  }

  pan(dx, dy, smoothly = false) {
    const { x, y, scale } = smoothly ? this.bound : this;
    this.go(x + dx / scale, y + dy / scale, scale, smoothly);
  }

  reset() {
    this.go(0, 0, 1, true);
  }

  /** Show a rectangle in the middle, this share of the view wide or high at most. */
  show(rect, share) {
    const seen = this.width - this.covered;
    const fitting = share * Math.min(seen / rect.w, this.height / rect.h);
    const scale = Math.min(Math.max(fitting, FARTHEST), CLOSEST);
    const x = rect.x + rect.w / 2 - seen / scale / 2;
    const y = rect.y + rect.h / 2 - this.height / scale / 2;
    this.go(x, y, scale, true);
  }

  /** Move as little as it takes to have a rectangle in view. */
  reveal(rect, margin) {
    const screen = this.toScreen(rect, this.bound);
    const dx = beyond(screen.x, screen.w, this.width - this.covered, margin);
    const dy = beyond(screen.y, screen.h, this.height, margin);
    if (dx || dy) this.pan(dx, dy, true);
  }

  go(x, y, scale, smoothly) {
    cancelAnimationFrame(this.flight);
    const target = this.clamp(x, y, scale);
    this.landing = null;
    if (!smoothly || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.settle(target.x, target.y, scale);
      return;
    }
    this.fly(target, scale);
  }

  /** A straight line seen from above: the scale grows by equal factors, and the place follows it. */
  fly(target, scale) {
    this.landing = { ...target, scale };
    this.moved();
    const from = { x: this.x, y: this.y, scale: this.scale };
    const zooms = Math.abs(Math.log(scale / from.scale)) > 1e-6;
    const began = performance.now();
    const frame = (now) => {
      const time = Math.min(Math.max((now - began) / FLIGHT, 0), 1);
      const eased = 1 - (1 - time) ** 3;
      if (time === 1) {
        this.landing = null;
        this.settle(target.x, target.y, scale);
        return;
      }
      const current = from.scale * (scale / from.scale) ** eased;
      const way = zooms ? (1 / current - 1 / from.scale) / (1 / scale - 1 / from.scale) : eased;
      this.settle(from.x + (target.x - from.x) * way, from.y + (target.y - from.y) * way, current);
      this.flight = requestAnimationFrame(frame);
    };
    this.flight = requestAnimationFrame(frame);
  }

  /** End a flight where it was going. */
  land() {
    if (this.landing) this.go(this.landing.x, this.landing.y, this.landing.scale, false);
  }

  settle(x, y, scale) {
    Object.assign(this, this.clamp(x, y, scale), { scale });
    this.moved();
  }

  /** The picture is as large as the view where it is not zoomed; its edges stay outside of the view. */
  clamp(x, y, scale) {
    const { width, height, covered } = this;
    const right = scale > 1 ? width - (width - covered) / scale : 0;
    return { x: Math.min(Math.max(x, 0), right), y: Math.min(Math.max(y, 0), height - height / scale) };
  }
}

function beyond(at, size, whole, margin) {
  if (size > whole - 2 * margin) return at + size / 2 - whole / 2;
  if (at < margin) return at - margin;
  return at + size > whole - margin ? at + size - whole + margin : 0;
}
