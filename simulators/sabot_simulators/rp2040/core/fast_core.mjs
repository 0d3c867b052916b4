// Runs the processor's code: compiled where it has run often, by rp2040js's interpreter elsewhere. The interpreter
// decodes every instruction each time it comes to it, through a chain of up to eighty comparisons, which is most of
// what an emulated second would cost.
//
// Nothing is different from the interpreter alone but the time it takes: compiled code runs up to the clock's next
// alarm, and what touches anything but RAM, flash and ROM is left to the interpreter, so every alarm, interrupt and
// access to a peripheral comes after the same instruction, at the same emulated nanosecond. tests/board compares both.
//
// Code in flash and ROM is taken to stay as it is, and code in RAM until the controller begins anew: this image's is
// copied there when it boots, and its MicroPython makes no machine code of its own.
import { compileRegion, makeDispatcher } from './compile.mjs';
import { decode, FOREIGN } from './decode.mjs';
import { CARRY_AT, FLASH_PLACES, LIMIT_AT, OVERFLOW_AT, place, RESULT_AT, ROM_PLACE, SPENT_AT, REFUSED_AT } from './memory.mjs';
import { findRegion, LONGEST } from './regions.mjs';
import { instantiate } from './wasm.mjs';

const [RESULT, CARRY, OVERFLOW] = [RESULT_AT / 4, CARRY_AT / 4, OVERFLOW_AT / 4];
const [SPENT, LIMIT, REFUSED] = [SPENT_AT / 4, LIMIT_AT / 4, REFUSED_AT / 4];
const PC = 15;

// What the entry of a place says. Above zero: the function in the table. Otherwise how often code began here.
const HOT = -32; // to be compiled, together with others
const NOW = -128; // the others are not waited for
const NEVER = -129; // it begins with what cannot be compiled
const TOGETHER = 32;
const TABLE = 1 << 16;

// Registers of the processor's own I/O that have nothing to do with time or pins: its number, the divider, the locks.
const isAside = (offset) => offset === 0 || (offset >= 0x60 && offset <= 0x78) || (offset >= 0x100 && offset < 0x180);

export class FastCore {
  constructor(memory) {
    this.memory = memory;
    this.entries = memory.entries;
    this.state = memory.state;
    this.sio = null;
    this.table = new WebAssembly.Table({ element: 'anyfunc', initial: TABLE });
    this.world = {
      memory: memory.linear,
      read: (address) => this.read(address),
      write: (address, value) => this.write(address, value),
    };
    this.dispatch = makeDispatcher({ ...this.world, table: this.table });
    this.slots = 1;
    this.stopped = false; // whether compiled code came to what is not for it
    this.waiting = []; // to be compiled
    this.made = new Map(); // what was compiled of code in RAM, by its place: each with the code it was made of
  }

  // The controller begins anew: other code may be in RAM.
  forgetRam() {
    this.entries.fill(0, FLASH_PLACES, ROM_PLACE);
    this.waiting = this.waiting.filter((pc) => pc >>> 28 !== 2);
  }

  // Run compiled code from where the processor is, up to a limit of cycles; how many it took, 0 if there is none.
  run(core, limit) {
    const { state } = this;
    state[RESULT] = core.Z ? 0 : core.N ? -1 : 1;
    state[CARRY] = core.C ? 1 : 0;
    state[OVERFLOW] = core.V ? -1 : 0;
    state[SPENT] = 0;
    state[LIMIT] = limit;
    this.sio = core.rp2040.sio;
    this.stopped = this.dispatch() === 1;
    const result = state[RESULT];
    core.N = result < 0;
    core.Z = result === 0;
    core.C = state[CARRY] === 1;
    core.V = state[OVERFLOW] < 0;
    return state[SPENT];
  }

  // For compiled code: the word at an address that is neither in RAM nor in flash, if it has nothing to do with time.
  read(address) {
    const known = address >>> 28 === 13 && isAside(address & 0xfffffff);
    this.state[REFUSED] = known ? 0 : 1;
    return known ? this.sio.readUint32(address & 0xfffffff) : 0;
  }

  // For compiled code: set such a word; whether that was refused.
  write(address, value) {
    const offset = address & 0xfffffff;
    if (address >>> 28 !== 13 || offset === 0 || !isAside(offset)) return 1;
    this.sio.writeUint32(offset, value >>> 0);
    return 0;
  }

  // Whether code that begins here is compiled; if not it is counted, and compiled when it has begun here often.
  knows(pc) {
    const at = place(pc);
    if (at < 0) return false;
    const entry = this.entries[at];
    if (entry > 0) return true;
    if (entry < NOW) return false;
    this.entries[at] = entry - 1;
    if (entry === HOT) this.waiting.push(pc);
    if (entry === NOW || this.waiting.length === TOGETHER) this.compile();
    return false;
  }

  compile() {
    const { waiting, slots } = this;
    this.waiting = [];
    const bodies = [];
    for (const pc of waiting) {
      const blocks = findRegion(pc, (each) => this.learn(each));
      this.entries[place(pc)] = blocks.length ? slots + bodies.length : NEVER;
      if (blocks.length) bodies.push(compileRegion(pc, blocks));
    }
    if (!bodies.length) return;
    instantiate(bodies, this.world).forEach((made, n) => this.table.set(slots + n, made));
    this.slots += bodies.length;
  }

  learn(pc) {
    if (place(pc) < 0) return { operation: FOREIGN };
    const [word, value] = decode(this.memory.half(pc), this.memory.half(pc + 2), pc);
    return { operation: word & 255, d: (word >> 8) & 15, n: (word >> 12) & 15, m: word >> 16, value, pc };
  }
}

// What runs code up to the clock's next alarm, or until the run is to stop; the cycles it took.
export function makeRun(fast) {
  const { registers } = fast.memory;
  return function run(pico, core, clock) {
    const { cycleNanos } = pico;
    if (!Number.isInteger(cycleNanos)) return interpret(pico, core, clock); // sums would be rounded otherwise
    let count = 0;
    let straightOn = -1; // where code goes on that was not compiled
    while (!pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil && pico.cycleNanos === cycleNanos) {
      if (core.interruptsUpdated && core.checkForInterrupts()) core.waiting = false;
      let pc = registers[PC] & ~1;
      let compiled = pc !== straightOn && fast.knows(pc);
      if (compiled) {
        const limit = Math.ceil((clock.nextAlarm.nanos - clock.nanosCounter) / cycleNanos);
        const spent = fast.run(core, limit);
        clock.nanosCounter += spent * cycleNanos;
        count += spent;
        straightOn = -1;
        if (clock.nextAlarm.nanos <= clock.nanosCounter) {
          clock.tick(0);
          continue;
        }
        pc = registers[PC];
        compiled = limit - spent > LONGEST && (fast.stopped || fast.knows(pc)); // what is next begins anew
      }
      count += interpret(pico, core, clock);
      straightOn = compiled ? -1 : pc + 2;
    }
    return count;
  };
}

// One instruction as rp2040js does it.
export function interpret(pico, core, clock) {
  const taken = core.executeInstruction();
  clock.nanosCounter += taken * pico.cycleNanos; // which it may have changed
  if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
  return taken;
}
