// Thumb code that runs often, translated to JavaScript a stretch at a time. rp2040js decodes every instruction each
// time it comes to it, which is most of what an emulated second costs.
//
// Nothing is different from the interpreter but the time it takes: a stretch runs only if it ends before the next
// alarm, and what touches anything but RAM and flash is left to the interpreter. So every alarm, interrupt and
// register access comes after the same instruction, at the same emulated nanosecond. tests/board compares both.
//
// Code in RAM is taken to stay as it is once it has run: this image's is copied there when it boots, and its
// MicroPython makes no machine code of its own.
import { Block, inMemory } from './block.mjs';
import { branch, NOT_OURS, ON, translate } from './thumb.mjs';

const ROM_SIZE = 0x4000;
const FLASH_PLACES = 1 << 20;
const RAM_PLACES = 1 << 18;
const ROM_AT = FLASH_PLACES + RAM_PLACES;
const PLACES = ROM_AT + ROM_SIZE / 2;
const OFTEN = 24; // as many times the interpreter comes by before a stretch is translated
const MOST_INSTRUCTIONS = 48;
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

  // Passed by the interpreter once more: the stretch that begins here, if it is one by now.
  pass(at, pc) {
    if (++this.passed[at] < OFTEN) return null;
    this.passed[at] = 0;
    const known = this.inRam.get(pc);
    if (known && known.code.every(([address, half]) => this.half(address) === half)) {
      this.blocks[at] = known.made;
      return known.made;
    }
    const { text, code } = this.stretch(pc);
    const names = ['R', 'ram8', 'ram16', 'ram32', 'flash8', 'flash16', 'flash32'];
    const made = new Function(...names, `return function(core,left){${text}}`)(...this.memory);
    if (at >= FLASH_PLACES && at < ROM_AT) this.inRam.set(pc, { made, code });
    this.blocks[at] = made;
    return made;
  }

  stretch(pc) {
    const first = this.walk(new Block(pc, [], false));
    if (!first.block.comesBack) return { text: first.block.text(first.most), code: first.code };
    const again = this.walk(new Block(pc, first.block.written, true));
    return { text: again.block.text(again.most), code: again.code };
  }

  walk(block) {
    const code = [];
    const seen = new Set();
    let over = false;
    while (!over) {
      const { pc } = block;
      if (seen.size === MOST_INSTRUCTIONS || seen.has(pc) || (!inMemory(pc) && pc >= ROM_SIZE)) {
        block.emit(block.goTo(pc, 0));
        break;
      }
      seen.add(pc);
      const opcode = this.half(pc);
      const second = this.half(pc + 2);
      code.push([pc, opcode], [pc + 2, second]);
      const next = branch(block, opcode, second);
      if (next !== undefined) {
        block.pc = next;
        continue;
      }
      const went = translate(block, opcode, this);
      if (went === NOT_OURS) block.emit(block.notForUs());
      over = went !== ON;
      block.pc = pc + 2;
    }
    return { block, code, most: block.cycles + MOST_INSTRUCTIONS + SPARE_CYCLES };
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
      let left = Math.ceil((clock.nextAlarm.nanos - clock.nanosCounter) / cycleNanos) - 1;
      if (core.interruptsUpdated && core.checkForInterrupts()) core.waiting = false;
      let spent = 0;
      for (;;) {
        const pc = registers[15] & ~1;
        const at = place(pc);
        const block = at < 0 ? null : (blocks[at] ?? translator.pass(at, pc));
        if (block === null) break;
        const taken = block(core, left);
        if (taken > 0) {
          spent += taken;
          left -= taken;
        } else {
          spent -= taken + 1;
          break;
        }
      }
      clock.nanosCounter += spent * cycleNanos;
      count += spent;
      let before;
      do { // up to where a stretch may begin
        before = registers[15];
        const taken = core.executeInstruction();
        clock.nanosCounter += taken * pico.cycleNanos; // which this instruction may have changed
        count += taken;
      } while (
        registers[15] === before + 2 &&
        !core.interruptsUpdated &&
        pico.cycleNanos === cycleNanos &&
        clock.nextAlarm.nanos > clock.nanosCounter &&
        !pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil &&
        (place(before + 2) < 0 || blocks[place(before + 2)] === null)
      );
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
