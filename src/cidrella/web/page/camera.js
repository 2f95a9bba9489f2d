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
    this.landing = null; // where a flight goes
  }

  /** The middle of what is seen, on the screen. */
  get middle() {
    return { x: (this.width - this.covered) / 2, y: this.height / 2 };
  }

  get zoomed() {
    return this.scale > 1.001;
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.settle(this.x, this.y, this.scale);
  }

  toScreen(rect) {
    return {
      x: (rect.x - this.x) * this.scale,
      y: (rect.y - this.y) * this.scale,
      w: rect.w * this.scale,
      h: rect.h * this.scale,
    };
  }

  toWorld(x, y) {
    return { x: this.x + x / this.scale, y: this.y + y / this.scale };
  }

  /** Zoom by a factor; what is at a point of the screen stays there. */
  zoom(factor, x = this.middle.x, y = this.middle.y, smoothly = false) {
    const scale = Math.min(Math.max(this.scale * factor, FARTHEST), CLOSEST);
    const { x: worldX, y: worldY } = this.toWorld(x, y);
    this.go(worldX - x / scale, worldY - y / scale, scale, smoothly);
  }

  pan(dx, dy, smoothly = false) {
    this.go(this.x + dx / this.scale, this.y + dy / this.scale, this.scale, smoothly);
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
    const screen = this.toScreen(rect);
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
    this.landing = [target.x, target.y, scale];
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
    if (this.landing) this.go(...this.landing, false);
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
