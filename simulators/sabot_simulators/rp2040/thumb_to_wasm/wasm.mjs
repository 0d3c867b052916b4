// As much of WebAssembly's binary format as compiled code needs.
const [TYPES, IMPORTS, FUNCTIONS, EXPORTS, CODE] = [1, 2, 3, 7, 10];
const I32 = 0x7f;
const FUNCREF = 0x70;
const EMPTY = 0x40;
const FUNCTION = 0x60;

export const [EQZ, EQ, NE, LT_S, LT_U, GT_S, GT_U, LE_S, LE_U, GE_S, GE_U] = Array.from({ length: 11 }, (_, n) => 0x45 + n);
export const [ADD, SUB, MUL, DIV_S, DIV_U, REM_S, REM_U] = Array.from({ length: 7 }, (_, n) => 0x6a + n);
export const [AND, OR, XOR, SHL, SHR_S, SHR_U, ROTL, ROTR] = Array.from({ length: 8 }, (_, n) => 0x71 + n);
export const [EXTEND8, EXTEND16] = [0xc0, 0xc1];
export const SELECT = 0x1b;
export const RETURN = 0x0f;

// What a function takes and gives.
export const NONE_TO_ONE = 0;
export const TWO_TO_ONE = 1;

// How memory is accessed: the instruction, and the logarithm of its size.
export const LOAD = [0x28, 2];
export const LOAD8_S = [0x2c, 0];
export const LOAD8_U = [0x2d, 0];
export const LOAD16_S = [0x2e, 1];
export const LOAD16_U = [0x2f, 1];
export const STORE = [0x36, 2];
export const STORE8 = [0x3a, 0];
export const STORE16 = [0x3b, 1];

// Operations that carry a value.
const NUMBER = 0x41;
export const get = (local) => ({ operation: 0x20, value: local });
export const set = (local) => ({ operation: 0x21, value: local });
export const tee = (local) => ({ operation: 0x22, value: local });
export const number = (value) => ({ operation: NUMBER, value });

// Bytes, one after the other.
class Writer {
  constructor() {
    this.bytes = new Uint8Array(1 << 10);
    this.size = 0;
  }

  byte(value) {
    if (this.size === this.bytes.length) this.grow(1);
    this.bytes[this.size++] = value;
  }

  all(bytes) {
    if (this.size + bytes.length > this.bytes.length) this.grow(bytes.length);
    this.bytes.set(bytes, this.size);
    this.size += bytes.length;
  }

  grow(more) {
    const larger = new Uint8Array(2 * (this.size + more));
    larger.set(this.written());
    this.bytes = larger;
  }

  unsigned(value) {
    let rest = value >>> 0;
    for (; rest > 127; rest >>>= 7) this.byte((rest & 127) | 128);
    this.byte(rest);
  }

  signed(value) {
    let rest = value | 0;
    for (; rest < -64 || rest > 63; rest >>= 7) this.byte((rest & 127) | 128);
    this.byte(rest & 127);
  }

  carrying({ operation, value }) {
    this.byte(operation);
    if (operation === NUMBER) this.signed(value);
    else this.byte(value);
  }

  written() {
    return this.bytes.subarray(0, this.size);
  }
}

// The body of one function, written from its beginning to its end.
export class Body {
  constructor(locals) {
    this.writer = new Writer();
    this.do(1);
    this.writer.unsigned(locals);
    this.do(I32);
    this.depth = 0; // of blocks that are open
  }

  // Operations, some of them with what they carry.
  do(...operations) {
    for (const each of operations) {
      if (typeof each === 'number') this.writer.byte(each);
      else this.writer.carrying(each);
    }
  }

  memory([operation, size], offset) {
    this.writer.byte(operation);
    this.writer.byte(size);
    this.writer.unsigned(offset);
  }

  block() {
    this.do(0x02, EMPTY);
    return ++this.depth;
  }

  loop() {
    this.do(0x03, EMPTY);
    return ++this.depth;
  }

  if(gives = false) {
    this.do(0x04, gives ? I32 : EMPTY);
    this.depth++;
  }

  else() {
    this.do(0x05);
  }

  end() {
    this.do(0x0b);
    this.depth--;
  }

  // To the end of a block or the beginning of a loop, named by the depth it was opened at.
  to(depth) {
    this.writer.byte(0x0c);
    this.writer.unsigned(this.depth - depth);
  }

  toIf(depth) {
    this.writer.byte(0x0d);
    this.writer.unsigned(this.depth - depth);
  }

  toOneOf(depths) {
    this.writer.byte(0x0e);
    this.writer.unsigned(depths.length - 1);
    for (const depth of depths) this.writer.unsigned(this.depth - depth);
  }

  callIndirect() {
    this.do(0x11, NONE_TO_ONE, 0);
  }

  callRead() {
    this.do(0x10, 0);
  }

  callWrite() {
    this.do(0x10, 1);
  }

  done() {
    this.do(0x0b);
    return this.writer.written();
  }
}

const unsigned = (value) => {
  const writer = new Writer();
  writer.unsigned(value);
  return [...writer.written()];
};
const list = (items) => [...unsigned(items.length), ...items.flat()];
const name = (text) => list([...Buffer.from(text)]);
const IMPORTED = 2; // functions: read and write

// Makes functions of bodies. World: the memory, the functions that callRead and callWrite call, and, for those that
// call others by their number, a table.
export function instantiate(bodies, world, type = NONE_TO_ONE) {
  const module = new Writer();
  const section = (id, contents) => {
    module.byte(id);
    module.unsigned(contents.length);
    module.all(contents);
  };
  const imported = (what, ...kind) => [...name('world'), ...name(what), ...kind];
  module.all([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  section(TYPES, list([[FUNCTION, 0, 1, I32], [FUNCTION, 2, I32, I32, 1, I32]]));
  const imports = [
    imported('memory', 2, 0, ...unsigned(world.memory.buffer.byteLength >> 16)),
    imported('read', 0, TWO_TO_ONE),
    imported('write', 0, TWO_TO_ONE),
  ];
  if (world.table) imports.push(imported('table', 1, FUNCREF, 0, 1));
  section(IMPORTS, list(imports));
  section(FUNCTIONS, list(bodies.map(() => [type])));
  section(EXPORTS, list(bodies.map((_, n) => [...name(`${n}`), 0, ...unsigned(n + IMPORTED)])));
  const code = new Writer();
  code.unsigned(bodies.length);
  for (const body of bodies) {
    code.unsigned(body.length);
    code.all(body);
  }
  section(CODE, code.written());
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.written()), { world });
  return bodies.map((_, n) => exports[n]);
}
