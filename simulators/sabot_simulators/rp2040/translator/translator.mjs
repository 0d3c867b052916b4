// Thumb code that runs often, translated to JavaScript a stretch at a time. rp2040js decodes every instruction each
// time it comes to it, which is most of what an emulated second costs.
//
// Nothing is different from the interpreter but the time it takes: a stretch runs only if it ends before the next
// alarm, and what touches anything but RAM and flash is left to the interpreter. So every alarm, interrupt and
// register access comes after the same instruction, at the same emulated nanosecond. tests/board compares both.
//
// Code in RAM is taken to stay as it is once it has run: this image's is copied there when it boots, and its
// MicroPython makes no machine code of its own.
import { Block } from './block.mjs';
import { branch, translate } from './thumb.mjs';

const ROM_SIZE = 0x4000;
const FLASH_PLACES = 1 << 20;
const RAM_PLACES = 1 << 18;
const ROM_AT = FLASH_PLACES + RAM_PLACES;
const PLACES = ROM_AT + ROM_SIZE / 2;
const OFTEN = 24; // as many times the interpreter comes by before a stretch is translated
const MOST_INSTRUCTIONS = 96;
const LEAST_INSTRUCTIONS = 6;
const SPARE_CYCLES = 4; // a branch that is taken costs more than one that is not

// Where a stretch that begins at an address is kept; -1 if there is no code there.
function place(pc) {
  switch (pc >>> 28) {
    case 1:
      return (pc & 0xfffffff) < FLASH_PLACES * 2 ? (pc & 0xfffffff) >>> 1 : -1;
    case 2:
      return FLASH_PLACES + ((pc & 0x7ffff) >>> 1);
    default:
      return pc >>> 0 < ROM_SIZE ? ROM_AT + (pc >>> 1) : -1;
  }
}

export class Translator {
  constructor(registers, ram, flash, rom) {
    this.memory = [
      new Int32Array(registers.buffer),
      new Uint8Array(ram.buffer),
      new Uint16Array(ram.buffer),
      new Int32Array(ram.buffer),
      new Uint8Array(flash.buffer),
      new Uint16Array(flash.buffer),
      new Int32Array(flash.buffer),
    ];
    this.rom = new Uint16Array(rom.buffer);
    this.blocks = new Array(PLACES).fill(null);
    this.passed = new Uint8Array(PLACES);
    this.inRam = new Map(); // stretches in RAM, with the code they were made from
  }

  half(address) {
    if (address >>> 28 === 1) return this.memory[5][(address & 0xffffff) >>> 1];
    if (address >>> 28 === 2) return this.memory[2][(address & 0x7ffff) >>> 1];
    return this.rom[address >>> 1];
  }

  word(address) {
    return this.half(address) | (this.half(address + 2) << 16);
  }

  constant(address) {
    return address >>> 28 === 1 || address < ROM_SIZE;
  }

  // The controller begins anew: what is in RAM may be other code until it is seen to be the same.
  forgetRam() {
    this.blocks.fill(null, FLASH_PLACES, ROM_AT);
    this.passed.fill(0, FLASH_PLACES, ROM_AT);
  }

  // The interpreter comes by once more: whether what begins here runs often by now.
  isHot(at) {
    if (++this.passed[at] < OFTEN) return false;
    this.passed[at] = 0;
    return true;
  }

  // Translate what was watched: addresses of instructions, and the one after them.
  make(path) {
    const [start] = path;
    const at = place(start);
    const known = this.inRam.get(start);
    if (known && known.code.every(([address, half]) => this.half(address) === half)) {
      this.blocks[at] = known.made;
      return;
    }
    let block = this.walk(new Block(start, [], false), path);
    if (block.comesBack) block = this.walk(new Block(start, block.written, true), path);
    const text = block.text(block.cycles + SPARE_CYCLES);
    const names = ['R', 'ram8', 'ram16', 'ram32', 'flash8', 'flash16', 'flash32'];
    const made = new Function(...names, `return function(core,left){${text}}`)(...this.memory);
    if (at >= FLASH_PLACES && at < ROM_AT) {
      this.inRam.set(start, { made, code: path.map((address) => [address, this.half(address)]) });
    }
    this.blocks[at] = made;
  }

  walk(block, path) {
    for (let n = 0; n < path.length - 1; n++) {
      block.pc = path[n];
      block.next = path[n + 1];
      const opcode = this.half(block.pc);
      if (branch(block, opcode, this.half(block.pc + 2))) {
        // its way on is the next of the path
      } else if (!translate(block, opcode, this)) {
        block.emit(block.notForUs());
        return block;
      }
    }
    block.emit(block.goTo(block.next, 0));
    return block;
  }
}

// What runs instead of one instruction after the other, until the clock's next alarm is due or the run is to stop.
export function makeRun(translator) {
  const { blocks } = translator;
  return function run(pico, core, clock) {
    const { cycleNanos } = pico;
    const { registers } = core;
    if (!Number.isInteger(cycleNanos)) return interpret(pico, core, clock); // sums would be rounded otherwise
    let count = 0;
    while (clock.nextAlarm !== null && !pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil) {
      if (core.interruptsUpdated && core.checkForInterrupts()) core.waiting = false;
      let left = Math.ceil((clock.nextAlarm.nanos - clock.nanosCounter) / cycleNanos) - 1;
      let spent = 0;
      let at;
      for (;;) {
        at = place(registers[15]);
        const block = at < 0 ? null : blocks[at];
        if (block === null) break;
        const taken = block(core, left);
        if (taken > 0) {
          spent += taken;
          left -= taken;
        } else {
          spent -= taken + 1;
          at = -1;
          break;
        }
      }
      clock.nanosCounter += spent * cycleNanos;
      count += spent;
      const path = at >= 0 && translator.isHot(at) ? [] : null;
      const start = registers[15] & ~1;
      let pc = start;
      do { // up to where a stretch may begin
        if (path) path.push(pc);
        const taken = core.executeInstruction();
        clock.nanosCounter += taken * pico.cycleNanos; // which this instruction may have changed
        count += taken;
        const before = pc;
        pc = registers[15] & ~1;
        if (path ? path.length === MOST_INSTRUCTIONS || pc === start : pc !== before + 2 || blocks[place(pc)]) break;
      } while (
        !core.interruptsUpdated &&
        pico.cycleNanos === cycleNanos &&
        clock.nextAlarm.nanos > clock.nanosCounter &&
        !pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil
      );
      if (path) {
        if (path.length >= LEAST_INSTRUCTIONS || pc === start) translator.make([...path, pc]);
      }
      if (clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
      if (pico.cycleNanos !== cycleNanos) break;
    }
    return count;
  };
}

// One instruction after the other, as rp2040js does it: what the above is compared with.
export function interpret(pico, core, clock) {
  const taken = core.executeInstruction();
  clock.nanosCounter += taken * pico.cycleNanos;
  if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
  return taken;
}
