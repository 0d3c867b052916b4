// Random code, compiled and interpreted: prints how many programs were compared and what was in them, or the first
// that ends differently. tests/board/test_emulator.py runs it: node random_programs.mjs PROGRAMS SEED
import { ConsoleLogger, LogLevel, Simulator } from 'rp2040js';
import { interpret } from '../../interpreter.mjs';
import { CompiledCode } from '../compiled_code.mjs';
import * as T from '../decode.mjs';
import { Memory } from '../memory.mjs';

console.warn = () => {}; // what rp2040js says of addresses at which nothing is
const [programs, seed] = process.argv.slice(2);
const NAMES = Object.fromEntries(Object.entries(T).filter(([, value]) => typeof value === 'number').map(([k, v]) => [v, k]));
const CYCLE_NANOS = 80; // so long that a program sees microseconds go
const SIZE = 24; // instructions
const TOGETHER = 50; // programs on one controller, one after the other
const CODE = 0x20001000;
const DATA = 0x20008000;
const STACK = 0x20010000;
const FLASH = 0x10000000;
const END = 0xe7fe; // for ever
const RETURNS = [0x4770, 0x47f0, 0x46f7]; // bx lr, blx lr, mov pc, lr
const FLAGS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]; // never both N and Z
const SPECIAL = [0, 1, 2, 7, 31, 32, 33, 255, 0x7fffffff, 0x80000000, 0xfffffff9, 0xffffffff];
const PLACES = [DATA, FLASH + 0x800, 0xd0000060, 0xd0000100, 0x40054000, 0x4003c000, 0x20041fe0, 0];

let state = Number(seed) >>> 0 || 1;
function random(below) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}
const word = () => ((random(0x10000) << 16) | random(0x10000)) >>> 0;

// One processor with the parts around it.
class Side {
  constructor(fast) {
    this.memory = new Memory();
    this.fast = fast ? new CompiledCode(this.memory) : null;
    this.memory.flash.forEach((_, n, cells) => (cells[n] = (n * 167 + (n >> 8)) & 255));
  }

  // A new controller.
  boot() {
    const { ram, flash, registers } = this.memory;
    const { clock, rp2040: mcu } = new Simulator();
    this.clock = clock;
    this.mcu = mcu;
    mcu.logger = new ConsoleLogger(LogLevel.Error + 1);
    mcu.sram = ram;
    mcu.sramView = new DataView(ram.buffer, ram.byteOffset, ram.length);
    mcu.flash = flash;
    mcu.flashView = new DataView(flash.buffer, flash.byteOffset, flash.length);
    mcu.core.registers = registers;
    this.fast?.boot(mcu);
  }

  // Give it this code, these registers and flags; what it has come to after so many cycles.
  run({ code, data, registers, flags, entries, limit }) {
    const { memory, clock, mcu } = this;
    const { core } = mcu;
    this.fast?.forgetRam();
    memory.ram.fill(0);
    code.forEach((half, n) => mcu.sramView.setUint16(CODE - 0x20000000 + 2 * n, half, true));
    data.forEach((each, n) => mcu.sramView.setUint32(DATA - 0x20000000 + 4 * n, each, true));
    data.forEach((_, n) => mcu.sramView.setUint32(STACK - 0x20000000 + 4 * n, CODE + 2 * (n % SIZE) + 1, true));
    memory.registers.set(registers);
    core.APSR = flags;
    const pico = { why: '', stalledUntil: 0, cycleNanos: CYCLE_NANOS, passes() {} };
    clock.createAlarm(() => (pico.why = 'until')).schedule(limit * CYCLE_NANOS);
    if (this.fast) {
      this.fast.waiting = entries;
      this.fast.compile();
    }
    const run = this.fast ? this.fast.run : interpret;
    let cycles = 0;
    while (!pico.why) {
      if (core.waiting) clock.tick(clock.nanosToNextAlarm);
      else cycles += run(pico, core, clock);
    }
    const { divDividend, divDivisor, divQuotient, divRemainder, divCSR, spinLock } = mcu.sio;
    const sio = [divDividend, divDivisor, divQuotient, divRemainder, divCSR, spinLock].map((each) => each >>> 0);
    return JSON.stringify({ registers: [...memory.registers], flags: core.APSR, cycles, now: clock.nanos, sio });
  }

  hasChanged(code) {
    return code.some((half, n) => this.mcu.sramView.getUint16(CODE - 0x20000000 + 2 * n, true) !== half);
  }
}

// A halfword that is decoded as something, and stays within the code if it goes anywhere.
function instruction(at) {
  if (!random(8)) return 0xd000 | (random(14) << 8) | ((random(SIZE) - at - 2) & 255);
  if (!random(40)) return RETURNS[random(RETURNS.length)];
  if (!random(8)) return (random(2) ? 0x6800 : 0x6000) | (random(7) << 6) | (4 << 3) | random(4); // the divider, see below
  if (!random(12)) return 0x6800 | (10 << 6) | (5 << 3) | random(4); // the time
  for (;;) {
    const half = random(8) ? random(0xe000) : 0x4000 | random(0x400);
    const [decoded, target] = T.decode(half, 0, CODE + 2 * at);
    const operation = decoded & 255;
    const goesByRegister = [T.BX, T.BLX, T.MOV_PC, T.ADD_PC].includes(operation);
    if (operation === T.FOREIGN || goesByRegister) continue;
    const isBranch = operation >= T.BEQ && operation <= T.BLE;
    if (isBranch && (target < CODE || target >= CODE + 2 * SIZE)) continue;
    return half;
  }
}

function register() {
  const kind = random(6);
  if (kind < 4) return (PLACES[random(PLACES.length)] + random(kind ? 64 : 8) * (random(4) ? 4 : 1)) >>> 0;
  return kind === 4 ? word() : SPECIAL[random(SPECIAL.length)];
}

function program() {
  const code = Array.from({ length: SIZE }, (_, n) => instruction(n)).concat(END);
  const registers = Array.from({ length: 13 }, register);
  if (random(2)) registers.splice(4, 2, 0xd0000060, 0x40054000);
  registers.push(STACK + 4 * random(16), CODE + 2 * random(SIZE) + 1, CODE);
  const data = Array.from({ length: 64 }, () => (random(2) ? word() : register()));
  const entries = code.map((_, n) => CODE + 2 * n).filter(() => random(2)); // what is compiled of it
  return { code, data, registers, flags: FLAGS[random(FLAGS.length)] << 28, entries, limit: 1 + random(200) };
}

const compiled = new Side(true);
const interpreted = new Side(false);
const seen = {};
let changed = false;
let compared = 0;
for (let n = 0; n < Number(programs); n++) {
  const each = program();
  if (n % TOGETHER === 0 || changed) for (const side of [compiled, interpreted]) side.boot();
  each.code.forEach((half, at) => {
    const name = NAMES[T.decode(half, 0, CODE + 2 * at)[0] & 255];
    seen[name] = (seen[name] ?? 0) + 1;
  });
  const [ours, theirs] = [compiled.run(each), interpreted.run(each)];
  changed = interpreted.hasChanged(each.code); // code that writes over itself is not promised to do the same
  if (changed) continue;
  compared++;
  const sameRam = Buffer.compare(compiled.memory.ram, interpreted.memory.ram) === 0;
  if (ours === theirs && sameRam) continue;
  const code = each.code.map((half) => half.toString(16).padStart(4, '0')).join(' ');
  console.log(JSON.stringify({ program: n, code, limit: each.limit, before: each.registers, ours, theirs, sameRam }));
  process.exit(1);
}
console.log(JSON.stringify({ compared, seen }));
