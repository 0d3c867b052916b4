// What compiled code does beside RAM, flash and ROM without the interpreter: reading registers of which nothing comes
// but a value, at the time the instruction has; and the processor's divider, which is asked for every division.
import * as M from './memory.mjs';
import * as W from './wasm.mjs';

const SIO = 0xd0000000;
const DIVIDER = SIO + 0x60;
// The divider's registers, each with its word.
const [UDIVIDEND, UDIVISOR, SDIVIDEND, SDIVISOR, QUOTIENT, REMAINDER, CSR] = [0, 4, 8, 12, 16, 20, 24];
const DIRTY_AND_READY = 3;

const words = (first, last) => Array.from({ length: (last - first) / 4 + 1 }, (_, n) => first + 4 * n);

// Reading these raises no interrupt, sets no alarm, and stops no run.
const QUIET = new Set([
  ...words(0x40054000, 0x40054040), // the timer
  ...words(0x50000000, 0x500002fc), // the channels of the DMA
  0x40034018, 0x40038018, // what the UARTs are at
  0x4003c00c, 0x4004000c, // the SPI controllers
  ...[0x40044000, 0x40048000].flatMap((i2c) => [0x2c, 0x34, 0x70, 0x74, 0x78, 0x80].map((offset) => i2c + offset)),
  0x4004c000, // the ADC
  0x40060018, 0x4006001c, // the ring oscillator
  SIO, // the processor's number
  ...words(SIO + 0x100, SIO + 0x17c), // the locks
]);
const LOCKS = new Set(words(SIO + 0x100, SIO + 0x17c));

// How many cycles more than two an access takes.
const moreCycles = (address) => ({ 4: 2, 13: -1 })[address >>> 28] ?? 0;

// The functions that compiled code calls. Both tell whether they have refused, and how many cycles more it took.
export class Aside {
  constructor(memory) {
    this.state = memory.state;
    this.mcu = null;
    this.began = 0; // when compiled code began, and how long a cycle takes
    this.cycleNanos = 0;
    const world = {
      memory: memory.linear,
      read: (address, spent) => this.read(address >>> 0, spent),
      write: (address) => this.write(address >>> 0),
    };
    [this.readWord, this.writeWord] = W.instantiate([readDivider(), writeDivider()], world, W.TWO_TO_ONE);
  }

  begin(mcu, cycleNanos) {
    this.mcu = mcu;
    this.began = mcu.clock.nanosCounter;
    this.cycleNanos = cycleNanos;
  }

  // The word at an address, after so many cycles.
  read(address, spent) {
    const { state, mcu, began } = this;
    const quiet = QUIET.has(address);
    state[M.REFUSED_AT / 4] = quiet ? 0 : 1;
    if (!quiet) return 0;
    state[M.MORE_AT / 4] = moreCycles(address);
    mcu.clock.nanosCounter = began + spent * this.cycleNanos;
    const value = mcu.readUint32(address);
    mcu.clock.nanosCounter = began;
    return value;
  }

  // Locks alone are given back; whether it was refused.
  write(address) {
    if (!LOCKS.has(address)) return 1;
    this.mcu.sio.writeUint32(address - SIO, 0);
    return 0;
  }
}

// The divider's registers as rp2040js has them, but kept in the linear memory.
export function placeDivider(sio, { state }) {
  const keep = (field, ...registers) => {
    const places = registers.map((register) => (M.DIVIDER_AT + register) / 4);
    const set = (value) => {
      for (const place of places) state[place] = value;
    };
    set(sio[field]);
    Object.defineProperty(sio, field, { get: () => state[places[0]] >>> 0, set, enumerable: true });
  };
  keep('divDividend', UDIVIDEND, SDIVIDEND);
  keep('divDivisor', UDIVISOR, SDIVISOR);
  keep('divQuotient', QUOTIENT);
  keep('divRemainder', REMAINDER);
  keep('divCSR', CSR);
}

const [FIRST, SECOND, AT] = [0, 1, 2]; // parameters and locals of what follows

function setWord(body, register, value) {
  body.do(W.number(0));
  value();
  body.memory(W.STORE, M.DIVIDER_AT + register);
}

function getWord(body, register) {
  body.do(W.number(0));
  body.memory(W.LOAD, M.DIVIDER_AT + register);
}

function storeAt(body, at, value) {
  body.do(W.number(0), W.number(value));
  body.memory(W.STORE, at);
}

// If the address (FIRST) is a register of the divider up to the last one that counts; AT is which.
function ifDivider(body, last) {
  body.do(W.get(FIRST), W.number(DIVIDER), W.SUB, W.tee(AT), W.get(AT), W.number(30));
  body.do(W.SHL, W.OR); // which makes it large if it is not aligned
  body.do(W.number(last), W.LE_U);
  body.if();
}

function readDivider() {
  const body = new W.Body(1);
  ifDivider(body, CSR);
  storeAt(body, M.REFUSED_AT, 0);
  storeAt(body, M.MORE_AT, -1);
  body.do(W.get(AT), W.number(QUOTIENT), W.EQ);
  body.if();
  setWord(body, CSR, () => {
    getWord(body, CSR);
    body.do(W.number(~2), W.AND);
  });
  body.end();
  body.do(W.get(AT));
  body.memory(W.LOAD, M.DIVIDER_AT);
  body.do(W.RETURN);
  body.end();
  body.do(W.get(FIRST), W.get(SECOND));
  body.callRead();
  return body.done();
}

function writeDivider() {
  const body = new W.Body(1);
  ifDivider(body, REMAINDER);
  storeAt(body, M.MORE_AT, -1);
  setWord(body, CSR, () => body.do(W.number(DIRTY_AND_READY)));
  body.do(W.get(AT), W.get(SECOND));
  body.memory(W.STORE, M.DIVIDER_AT);
  body.do(W.get(AT), W.number(QUOTIENT), W.LT_U);
  body.if();
  for (const [register, twin] of [[UDIVIDEND, SDIVIDEND], [UDIVISOR, SDIVISOR]]) {
    body.do(W.get(AT), W.number(~SDIVIDEND), W.AND, W.number(register), W.EQ);
    body.if();
    setWord(body, register, () => body.do(W.get(SECOND)));
    setWord(body, twin, () => body.do(W.get(SECOND)));
    body.end();
  }
  divide(body);
  body.end();
  body.do(W.number(0), W.RETURN);
  body.end();
  storeAt(body, M.MORE_AT, -1);
  body.do(W.get(FIRST), W.get(SECOND));
  body.callWrite();
  return body.done();
}

// By nothing, and by -1 where WebAssembly would not go beyond what a word can hold, it is as rp2040js has it.
function divide(body) {
  const both = (quotient, remainder) => {
    setWord(body, QUOTIENT, quotient);
    setWord(body, REMAINDER, remainder);
  };
  const operands = (operation) => () => {
    getWord(body, UDIVIDEND);
    getWord(body, UDIVISOR);
    body.do(operation);
  };
  getWord(body, UDIVISOR);
  body.do(W.EQZ);
  body.if();
  both(
    () => {
      body.do(W.number(-1), W.number(1));
      getWord(body, UDIVIDEND);
      body.do(W.SELECT);
    },
    () => getWord(body, UDIVIDEND),
  );
  body.else();
  body.do(W.get(AT), W.number(SDIVIDEND), W.LT_U);
  body.if();
  both(operands(W.DIV_U), operands(W.REM_U));
  body.else();
  getWord(body, UDIVISOR);
  body.do(W.number(-1), W.EQ);
  body.if();
  both(
    () => {
      body.do(W.number(0));
      getWord(body, UDIVIDEND);
      body.do(W.SUB);
    },
    () => body.do(W.number(0)),
  );
  body.else();
  both(operands(W.DIV_S), operands(W.REM_S));
  body.end();
  body.end();
  body.end();
}
