// Where in a tile a prefix is drawn. A tile is the unit square, stretched later; a range is read in it like text, from
// left to right and from top to bottom.
//
// The bits below the range's own are taken eight at a time: sixteen rows of sixteen cells, and in each cell again
// sixteen rows of sixteen. What does not divide by eight comes first, so that the blocks of the range are whole cells.
// Rows and columns are powers of two, so that every prefix is a rectangle, whatever its length.

import { BITS, Prefix } from "./address.js";

const STEP = 8;

export class Grid {
  /** The grid of a range whose blocks have this length; a flat one has four times as many columns as rows. */
  constructor(range, blockLength, flat = false) {
    this.range = range;
    this.fewer = flat ? 1 : 0;
    const depth = Math.max(blockLength - range.length, 0);
    this.firstStep = depth % STEP || Math.min(STEP, BITS[range.family] - range.length) || STEP;
  }

  /** Of the bits of a step that are taken, those that say which row; the others say which column. */
  rowBits(step, taken) {
    return Math.min(taken, Math.max((step >> 1) - this.fewer, 0));
  }

  /** The rectangle of a prefix. One that contains the range, or is the range, is all of it. */
  place(prefix) {
    let left = prefix.length - this.range.length;
    if (left <= 0) return { x: 0, y: 0, w: 1, h: 1 };
    const index = (prefix.first - this.range.first) >> BigInt(BITS[prefix.family] - prefix.length);
    const rect = { x: 0, y: 0, w: 1, h: 1 };
    for (let step = this.firstStep; left > 0; step = STEP) {
      const taken = Math.min(step, left);
      left -= taken;
      const part = Number((index >> BigInt(left)) & ((1n << BigInt(taken)) - 1n));
      descend(rect, this.rowBits(step, taken), taken, part);
    }
    return rect;
  }

  /** The prefix of a length that is drawn at a point: the other way round. */
  at(x, y, length) {
    let left = length - this.range.length;
    let index = 0n;
    for (let step = this.firstStep; left > 0; step = STEP) {
      const taken = Math.min(step, left);
      left -= taken;
      const rowBits = this.rowBits(step, taken);
      const columnBits = taken - rowBits;
      const row = inside(y, rowBits);
      const column = inside(x, columnBits);
      y = y * 2 ** rowBits - row;
      x = x * 2 ** columnBits - column;
      index = (index << BigInt(taken)) | BigInt(row * 2 ** columnBits + column);
    }
    const value = this.range.first + (index << BigInt(BITS[this.range.family] - length));
    return new Prefix(this.range.family, value, length);
  }
}

/** Narrow a rectangle to a part of a step: the high bits say which row, the others which column. */
function descend(rect, rowBits, taken, part) {
  const columnBits = taken - rowBits;
  rect.h /= 2 ** rowBits;
  rect.w /= 2 ** columnBits;
  rect.y += (part >>> columnBits) * rect.h;
  rect.x += (part & (2 ** columnBits - 1)) * rect.w;
}

function inside(share, bits) {
  return Math.min(Math.max(Math.floor(share * 2 ** bits), 0), 2 ** bits - 1);
}
