// Runs the processor's code: compiled where it has run often, by rp2040js's interpreter elsewhere. The interpreter
// decodes every instruction each time it comes to it, through a chain of up to eighty comparisons: most of what an
// emulated second would cost. README.md has the promise to keep, the assumption about code in RAM, and the off switch.
import { setFlagsFromString } from 'node:v8';
import { interpret } from '../interpreter.mjs';
import { Aside, placeDivider } from './aside.mjs';
import { compileRegion } from './compile.mjs';
import { decode, FOREIGN } from './decode.mjs';
import { makeDispatcher } from './dispatcher.mjs';
import { CARRY_AT, FLASH_PLACES, LIMIT_AT, Memory, OVERFLOW_AT, place, RESULT_AT, ROM_PLACE, SPENT_AT } from './memory.mjs';
import { findRegion, LONGEST } from './regions.mjs';
import { instantiate } from './wasm.mjs';

const [RESULT, CARRY, OVERFLOW] = [RESULT_AT / 4, CARRY_AT / 4, OVERFLOW_AT / 4];
const [SPENT, LIMIT] = [SPENT_AT / 4, LIMIT_AT / 4];
const PC = 15;

// What the entry of a place says. Above zero: the function in the table. Otherwise how often code began here.
const COLD = 0;
const HOT = -32; // to be compiled, together with others
const NOW = -128; // the others are not waited for
const NEVER = -129; // it begins with what cannot be compiled
const TOGETHER = 32;
const FARTHEST = 1 << 30; // cycles at once

// Node compiles what it thinks is hot once more, better, which takes longer than most of this code runs.
setFlagsFromString('--wasm-tiering-budget=40000000');

export class CompiledCode {
  constructor(memory = new Memory()) {
    this.memory = memory;
    this.ram = memory.ram;
    this.registers = memory.registers;
    this.rom = memory.rom;
    this.flash = memory.flash;
    this.entries = memory.entries;
    this.state = memory.state;
    this.aside = new Aside(memory);
    this.table = new WebAssembly.Table({ element: 'anyfunc', initial: 1 });
    this.world = { memory: memory.linear, read: this.aside.readWord, write: this.aside.writeWord };
    this.dispatch = makeDispatcher({ ...this.world, table: this.table });
    this.stopped = false; // whether compiled code came to what is not for it
    this.waiting = []; // to be compiled
    this.made = new Map(); // the function of each region, by its code: RAM has the same after every boot
    this.watched = new Set(); // addresses that are left to the interpreter
    this.run = makeRun(this);
  }

  // The controller begins anew.
  boot(mcu) {
    placeDivider(mcu.sio, this.memory);
    this.forgetRam();
  }

  // Other code may be in RAM.
  forgetRam() {
    this.entries.fill(0, FLASH_PLACES, ROM_PLACE);
    this.waiting = this.waiting.filter((pc) => pc >>> 28 !== 2);
  }

  // Leave an address to the interpreter from now on, for whoever wants to see it passed: the beginning of a function,
  // or where one returns to, which is always the beginning of a region.
  watch(pc) {
    if (this.watched.has(pc) || place(pc) < 0) return;
    this.watched.add(pc);
    this.entries[place(pc)] = NEVER;
  }

  // Execute compiled code from where the processor is, up to a limit of cycles; how many it took.
  execute(core, limit, cycleNanos) {
    const { state } = this;
    state[RESULT] = core.Z ? 0 : core.N ? -1 : 1;
    state[CARRY] = core.C ? 1 : 0;
    state[OVERFLOW] = core.V ? -1 : 0;
    state[SPENT] = 0;
    state[LIMIT] = limit;
    this.aside.begin(core.rp2040, cycleNanos);
    this.stopped = this.dispatch() === 1;
    const result = state[RESULT];
    core.N = result < 0;
    core.Z = result === 0;
    core.C = state[CARRY] === 1;
    core.V = state[OVERFLOW] < 0;
    return state[SPENT];
  }

  // What is known of code that begins here: above zero if it is compiled, NEVER, or else. It is counted, and compiled
  // when it has begun here often.
  look(pc) {
    const at = place(pc);
    if (at < 0) return NEVER;
    const entry = this.entries[at];
    if (entry > 0 || entry === NEVER) return entry;
    this.entries[at] = entry - 1;
    if (entry === HOT) this.waiting.push(pc);
    if (entry === NOW || this.waiting.length === TOGETHER) this.compile();
    return entry;
  }

  compile() {
    const { waiting, table, made } = this;
    const first = table.length;
    this.waiting = [];
    const bodies = [];
    for (const pc of waiting) {
      const blocks = findRegion(pc, (each) => this.learn(each));
      const code = JSON.stringify([pc, blocks]);
      if (blocks.length && !made.has(code)) {
        made.set(code, first + bodies.length);
        bodies.push(compileRegion(pc, blocks));
      }
      this.entries[place(pc)] = made.get(code) ?? NEVER;
    }
    if (!bodies.length) return;
    table.grow(bodies.length);
    instantiate(bodies, this.world).forEach((region, n) => table.set(first + n, region));
  }

  learn(pc) {
    if (place(pc) < 0 || this.watched.has(pc)) return { operation: FOREIGN };
    const [word, value] = decode(this.memory.half(pc), this.memory.half(pc + 2), pc);
    return { operation: word & 255, d: (word >> 8) & 15, n: (word >> 12) & 15, m: word >> 16, value, pc };
  }
}

// What runs code up to the clock's next alarm, or until the run is to stop; the cycles it took.
function makeRun(fast) {
  const { registers } = fast.memory;
  return function run(pico, core, clock) {
    const { cycleNanos } = pico;
    if (!Number.isInteger(cycleNanos)) return interpret(pico, core, clock); // sums would be rounded otherwise
    let count = 0;
    let straightOn = -1; // where code goes on that is not compiled
    while (!pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil && pico.cycleNanos === cycleNanos) {
      if (core.interruptsUpdated && core.checkForInterrupts()) core.waiting = false;
      let pc = registers[PC] & ~1;
      let entry = pc === straightOn ? COLD : fast.look(pc);
      if (entry > 0) {
        const limit = Math.min(Math.ceil((clock.nextAlarm.nanos - clock.nanosCounter) / cycleNanos), FARTHEST);
        const spent = fast.execute(core, limit, cycleNanos);
        clock.nanosCounter += spent * cycleNanos;
        count += spent;
        straightOn = -1;
        if (clock.nextAlarm.nanos <= clock.nanosCounter) {
          clock.tick(0);
          continue;
        }
        pc = registers[PC];
        if (limit - spent < LONGEST) entry = COLD;
        else entry = fast.stopped ? NEVER : fast.look(pc);
      }
      count += interpret(pico, core, clock);
      straightOn = entry === NEVER ? -1 : pc + 2; // after what is not to be compiled, code begins anew
    }
    return count;
  };
}
