// The processor's instructions, from their decoded words. rp2040js decodes every instruction each time it comes to
// it, through a chain of up to eighty comparisons, which is most of what an emulated second costs.
//
// Nothing is different from its interpreter but the time it takes: this runs up to the clock's next alarm, and what
// touches anything but RAM and flash is left to the interpreter, so every alarm, interrupt and access to a peripheral
// comes after the same instruction, at the same emulated nanosecond. tests/board compares both.
//
// Code in RAM is taken to stay as it is once it has run: this image's is copied there when it boots, and its
// MicroPython makes no machine code of its own. Cases are numbers, those of decode.mjs: only so is the switch a jump.
import { decode, FOREIGN, UNKNOWN } from './decode.mjs';

const ROM_SIZE = 0x4000;
const FLASH = 0x10000000;
const FLASH_SIZE = 2 << 20;
const RAM = 0x20000000;
const RAM_SIZE = 264 * 1024;
const FLASH_PLACES = 1 << 20;
const RAM_PLACES = 1 << 18;
const ROM_AT = FLASH_PLACES + RAM_PLACES;
const PLACES = ROM_AT + ROM_SIZE / 2;

// Where the word of an address is kept; -1 if there is no code there.
function place(pc) {
  switch (pc >>> 28) {
    case 0:
      return pc < ROM_SIZE ? ROM_AT + (pc >>> 1) : -1;
    case 1:
      return (pc & 0xfffffff) < FLASH_SIZE ? (pc & 0xfffffff) >>> 1 : -1;
    case 2:
      return FLASH_PLACES + ((pc & 0x7ffff) >>> 1);
    default:
      return -1;
  }
}

// Registers of the processor's own I/O that have nothing to do with time or pins: its number, the divider, the locks.
const isAside = (offset) => offset === 0 || (offset >= 0x60 && offset <= 0x78) || (offset >= 0x100 && offset < 0x180);

// Runs code up to the clock's next alarm, or to what it must leave to the interpreter; the cycles it took.
export class FastCore {
  constructor(registers, ram, flash, rom) {
    this.registers = new Int32Array(registers.buffer);
    this.ram = ram;
    this.flash = flash;
    this.rom = new Uint16Array(rom.buffer);
    this.words = new Int32Array(PLACES);
    this.values = new Int32Array(PLACES);
    this.watched = new Set(); // addresses that are left to the interpreter
    this.run = this.makeRun();
  }

  // The controller begins anew: other code may be in RAM.
  forgetRam() {
    this.words.fill(UNKNOWN, FLASH_PLACES, ROM_AT);
  }

  half(address) {
    if (address >>> 28 === 1) return this.flash[address & 0xffffff] | (this.flash[(address & 0xffffff) + 1] << 8);
    if (address >>> 28 === 2) return this.ram[address & 0x7ffff] | (this.ram[(address & 0x7ffff) + 1] << 8);
    return this.rom[address >>> 1];
  }

  // Leave an address to the interpreter from now on, for whoever wants to see it passed.
  watch(pc) {
    this.watched.add(pc);
    this.words[place(pc)] = UNKNOWN;
  }

  learn(at, pc) {
    const decoded = decode(this.half(pc), this.half(pc + 2), pc);
    const [word, value] = this.watched.has(pc) ? [FOREIGN, 0] : decoded;
    this.words[at] = word;
    this.values[at] = value;
  }

  makeRun() {
    const { words, values } = this;
    const R = this.registers;
    const ram8 = this.ram;
    const ram16 = new Uint16Array(ram8.buffer);
    const ram32 = new Int32Array(ram8.buffer);
    const flash8 = this.flash;
    const flash16 = new Uint16Array(flash8.buffer);
    const flash32 = new Int32Array(flash8.buffer);
    const learn = (at, pc) => this.learn(at, pc);
    return function run(core, limit) {
      const { sio } = core.rp2040;
      let result = core.Z ? 0 : core.N ? -1 : 1; // its sign and whether it is zero are the flags N and Z
      let C = core.C ? 1 : 0;
      let V = core.V ? -1 : 0; // set if negative
      let spent = 0;
      let pc = R[15] & ~1;
      let at = place(pc);
      let base = pc - at * 2; // pc is base + at * 2 as long as it stays in the same memory
      if (at < 0) return 0;
      loop: while (spent < limit) {
        const word = words[at];
        const d = (word >> 8) & 15;
        switch (word & 255) {
          case 0: // UNKNOWN
            learn(at, base + at * 2);
            continue;
          case 1: // FOREIGN
            break loop;
          case 2: { // LSL_I
            const a = R[word >> 16];
            const by = values[at];
            C = (a >>> (32 - by)) & 1;
            R[d] = result = a << by;
            spent += 1;
            break;
          }
          case 3: { // LSR_I
            const a = R[word >> 16];
            const by = values[at];
            C = by ? (a >>> (by - 1)) & 1 : a >>> 31;
            R[d] = result = by ? (a >>> by) | 0 : 0;
            spent += 1;
            break;
          }
          case 4: { // ASR_I
            const a = R[word >> 16];
            const by = values[at];
            C = by ? (a >>> (by - 1)) & 1 : a >>> 31;
            R[d] = result = a >> (by || 31);
            spent += 1;
            break;
          }
          case 5: // MOVS
            R[d] = result = R[word >> 16];
            spent += 1;
            break;
          case 6: { // ADD_R
            const a = R[(word >> 12) & 15];
            const b = R[word >> 16];
            result = (a + b) | 0;
            C = result >>> 0 < a >>> 0 ? 1 : 0;
            V = (a ^ result) & (b ^ result);
            R[d] = result;
            spent += 1;
            break;
          }
          case 7: { // SUB_R
            const a = R[(word >> 12) & 15];
            const b = R[word >> 16];
            result = (a - b) | 0;
            C = a >>> 0 >= b >>> 0 ? 1 : 0;
            V = (a ^ b) & (a ^ result);
            R[d] = result;
            spent += 1;
            break;
          }
          case 8: { // ADD_I
            const a = R[(word >> 12) & 15];
            const b = values[at];
            result = (a + b) | 0;
            C = result >>> 0 < a >>> 0 ? 1 : 0;
            V = (a ^ result) & (b ^ result);
            R[d] = result;
            spent += 1;
            break;
          }
          case 9: { // SUB_I
            const a = R[(word >> 12) & 15];
            const b = values[at];
            result = (a - b) | 0;
            C = a >>> 0 >= b ? 1 : 0;
            V = (a ^ b) & (a ^ result);
            R[d] = result;
            spent += 1;
            break;
          }
          case 10: // MOV_I
            R[d] = result = values[at];
            spent += 1;
            break;
          case 11: { // CMP_I
            const a = R[(word >> 12) & 15];
            const b = values[at];
            result = (a - b) | 0;
            C = a >>> 0 >= b ? 1 : 0;
            V = (a ^ b) & (a ^ result);
            spent += 1;
            break;
          }
          case 12: // AND
            R[d] = result = R[d] & R[word >> 16];
            spent += 1;
            break;
          case 13: // EOR
            R[d] = result = R[d] ^ R[word >> 16];
            spent += 1;
            break;
          case 14: { // LSL
            const a = R[d];
            const by = R[word >> 16] & 255;
            if (by) C = a & (1 << (32 - by)) ? 1 : 0;
            R[d] = result = by >= 32 ? 0 : a << by;
            spent += 1;
            break;
          }
          case 15: { // LSR
            const a = R[d];
            const by = R[word >> 16] & 255;
            C = by <= 32 ? (a >>> (by - 1)) & 1 : 0;
            R[d] = result = by < 32 ? (a >>> by) | 0 : 0;
            spent += 1;
            break;
          }
          case 16: { // ASR
            const a = R[d];
            const by = Math.min(R[word >> 16] & 255, 32);
            C = a & (1 << (by - 1)) ? 1 : 0;
            R[d] = result = by < 32 ? a >> by : a >> 31;
            spent += 1;
            break;
          }
          case 17: { // ADC
            const a = R[word >> 16] >>> 0;
            const b = (R[d] >>> 0) + C;
            const sum = a + b;
            result = sum | 0;
            C = sum !== sum >>> 0 ? 1 : 0;
            V = result !== (a | 0) + (b | 0) ? -1 : 0;
            R[d] = result;
            spent += 1;
            break;
          }
          case 18: { // SBC
            const a = R[d] >>> 0;
            const b = (R[word >> 16] >>> 0) + (1 - C);
            result = (a - b) | 0;
            C = a >= b ? 1 : 0;
            V = (a ^ b) & (a ^ result);
            R[d] = result;
            spent += 1;
            break;
          }
          case 19: { // ROR
            const a = R[d];
            const by = R[word >> 16] & 31;
            R[d] = result = (a >>> by) | (a << (32 - by));
            C = result < 0 ? 1 : 0;
            spent += 1;
            break;
          }
          case 20: // TST
            result = R[d] & R[word >> 16];
            spent += 1;
            break;
          case 21: { // NEG
            const b = R[word >> 16];
            result = -b | 0;
            C = b === 0 ? 1 : 0;
            V = b & result;
            R[d] = result;
            spent += 1;
            break;
          }
          case 22: { // CMP
            const a = R[d];
            const b = R[word >> 16];
            result = (a - b) | 0;
            C = a >>> 0 >= b >>> 0 ? 1 : 0;
            V = (a ^ b) & (a ^ result);
            spent += 1;
            break;
          }
          case 23: { // CMN
            const a = R[d];
            const b = R[word >> 16];
            result = (a + b) | 0;
            C = result >>> 0 < a >>> 0 ? 1 : 0;
            V = (a ^ result) & (b ^ result);
            spent += 1;
            break;
          }
          case 24: // ORR
            R[d] = result = R[d] | R[word >> 16];
            spent += 1;
            break;
          case 25: // MUL
            R[d] = result = Math.imul(R[d], R[word >> 16]);
            spent += 1;
            break;
          case 26: // BIC
            R[d] = result = R[d] & ~R[word >> 16];
            spent += 1;
            break;
          case 27: // MVN
            R[d] = result = ~R[word >> 16];
            spent += 1;
            break;
          case 28: // ADD_HIGH
            R[d] = R[d] + R[word >> 16];
            spent += 1;
            break;
          case 29: // ADD_OFFSET
            R[d] = R[(word >> 12) & 15] + values[at];
            spent += 1;
            break;
          case 30: // ADD_SP
            R[13] = (R[13] + R[word >> 16]) & ~3;
            spent += 1;
            break;
          case 31: // MOV_HIGH
            R[d] = R[word >> 16];
            spent += 1;
            break;
          case 32: // MOV_SP
            R[13] = R[word >> 16] & ~3;
            spent += 1;
            break;
          case 33: { // BX
            const to = R[word >> 16];
            if (to >>> 28 === 15) break loop; // the end of an exception
            pc = to & ~1;
            at = place(pc);
            base = pc - at * 2;
            spent += 2;
            if (at < 0) break loop;
            continue;
          }
          case 34: { // BLX
            pc = R[word >> 16] & ~1;
            R[14] = (base + at * 2 + 2) | 1;
            at = place(pc);
            base = pc - at * 2;
            spent += 2;
            if (at < 0) break loop;
            continue;
          }
          case 35: // MOV_PC
            pc = R[word >> 16] & ~1;
            at = place(pc);
            base = pc - at * 2;
            spent += 2;
            if (at < 0) break loop;
            continue;
          case 36: // ADD_PC
            pc = (values[at] + R[word >> 16]) & ~1;
            at = place(pc);
            base = pc - at * 2;
            spent += 2;
            if (at < 0) break loop;
            continue;
          case 37: { // LITERAL
            const from = values[at];
            if (from >>> 28 === 1) R[d] = flash32[(from - FLASH) >>> 2];
            else if (from >>> 28 === 2) R[d] = ram32[(from - RAM) >>> 2];
            else break loop;
            spent += 2;
            break;
          }
          case 38: // CONSTANT
            R[d] = values[at];
            spent += 1;
            break;
          case 39: { // LDR_I
            const from = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE && !(from & 3)) R[d] = ram32[(from - RAM) >>> 2];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE && !(from & 3)) R[d] = flash32[(from - FLASH) >>> 2];
            else if (from >>> 28 === 13 && isAside(from & 0xfffffff)) {
              R[d] = sio.readUint32(from & 0xfffffff);
              spent -= 1;
            } else break loop;
            spent += 2;
            break;
          }
          case 40: { // STR_I
            const to = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE && !(to & 3)) ram32[(to - RAM) >>> 2] = R[d];
            else if (to >>> 28 === 13 && (to & 0xfffffff) && isAside(to & 0xfffffff)) {
              sio.writeUint32(to & 0xfffffff, R[d] >>> 0);
              spent -= 1;
            } else break loop;
            spent += 2;
            break;
          }
          case 41: { // LDRB_I
            const from = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE) R[d] = ram8[(from - RAM) >>> 0];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE) R[d] = flash8[(from - FLASH) >>> 0];
            else break loop;
            spent += 2;
            break;
          }
          case 42: { // STRB_I
            const to = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE) ram8[(to - RAM) >>> 0] = R[d];
            else break loop;
            spent += 2;
            break;
          }
          case 43: { // LDRH_I
            const from = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE && !(from & 1)) R[d] = ram16[(from - RAM) >>> 1];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE && !(from & 1)) R[d] = flash16[(from - FLASH) >>> 1];
            else break loop;
            spent += 2;
            break;
          }
          case 44: { // STRH_I
            const to = (R[(word >> 12) & 15] + values[at]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE && !(to & 1)) ram16[(to - RAM) >>> 1] = R[d];
            else break loop;
            spent += 2;
            break;
          }
          case 45: { // LDR
            const from = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE && !(from & 3)) R[d] = ram32[(from - RAM) >>> 2];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE && !(from & 3)) R[d] = flash32[(from - FLASH) >>> 2];
            else break loop;
            spent += 2;
            break;
          }
          case 46: { // STR
            const to = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE && !(to & 3)) ram32[(to - RAM) >>> 2] = R[d];
            else break loop;
            spent += 2;
            break;
          }
          case 47: { // LDRB
            const from = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE) R[d] = ram8[(from - RAM) >>> 0];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE) R[d] = flash8[(from - FLASH) >>> 0];
            else break loop;
            spent += 2;
            break;
          }
          case 48: { // STRB
            const to = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE) ram8[(to - RAM) >>> 0] = R[d];
            else break loop;
            spent += 2;
            break;
          }
          case 49: { // LDRH
            const from = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE && !(from & 1)) R[d] = ram16[(from - RAM) >>> 1];
            else if ((from - FLASH) >>> 0 < FLASH_SIZE && !(from & 1)) R[d] = flash16[(from - FLASH) >>> 1];
            else break loop;
            spent += 2;
            break;
          }
          case 50: { // STRH
            const to = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((to - RAM) >>> 0 < RAM_SIZE && !(to & 1)) ram16[(to - RAM) >>> 1] = R[d];
            else break loop;
            spent += 2;
            break;
          }
          case 51: { // LDRSB
            const from = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE) R[d] = (ram8[(from - RAM) >>> 0] << 24) >> 24;
            else if ((from - FLASH) >>> 0 < FLASH_SIZE) R[d] = (flash8[(from - FLASH) >>> 0] << 24) >> 24;
            else break loop;
            spent += 2;
            break;
          }
          case 52: { // LDRSH
            const from = (R[(word >> 12) & 15] + R[word >> 16]) | 0;
            if ((from - RAM) >>> 0 < RAM_SIZE && !(from & 1)) R[d] = (ram16[(from - RAM) >>> 1] << 16) >> 16;
            else if ((from - FLASH) >>> 0 < FLASH_SIZE && !(from & 1)) R[d] = (flash16[(from - FLASH) >>> 1] << 16) >> 16;
            else break loop;
            spent += 2;
            break;
          }
          case 53: { // PUSH
            const list = values[at];
            let size = 0;
            for (let bits = list; bits; bits &= bits - 1) size++;
            const to = R[13] - RAM - 4 * size;
            if (to >>> 0 > RAM_SIZE - 4 * size) break loop;
            let next = to >>> 2;
            for (let n = 0; n < 8; n++) if (list & (1 << n)) ram32[next++] = R[n];
            if (list & 0x4000) ram32[next] = R[14];
            R[13] = R[13] - 4 * size;
            spent += 1 + size - (list >> 14);
            break;
          }
          case 54: { // POP
            const list = values[at];
            const from = R[13] - RAM;
            if (from >>> 0 > RAM_SIZE - 32) break loop;
            let next = from >>> 2;
            const first = next;
            for (let n = 0; n < 8; n++) if (list & (1 << n)) R[n] = ram32[next++];
            R[13] = R[13] + 4 * (next - first);
            spent += 1 + next - first;
            break;
          }
          case 55: { // POP_PC
            const list = values[at];
            const from = R[13] - RAM;
            if (from >>> 0 > RAM_SIZE - 36) break loop;
            const first = from >>> 2;
            let size = 0;
            for (let bits = list; bits; bits &= bits - 1) size++;
            const to = ram32[first + size];
            if (to >>> 28 === 15) break loop; // the end of an exception
            let next = first;
            for (let n = 0; n < 8; n++) if (list & (1 << n)) R[n] = ram32[next++];
            R[13] = R[13] + 4 * size + 4;
            pc = to & ~1;
            at = place(pc);
            base = pc - at * 2;
            spent += 3 + size;
            if (at < 0) break loop;
            continue;
          }
          case 56: { // LDM
            const list = values[at];
            const n = (word >> 12) & 15;
            const from = R[n] - RAM;
            if (from >>> 0 > RAM_SIZE - 32 || from & 3) break loop;
            let next = from >>> 2;
            const first = next;
            for (let each = 0; each < 8; each++) if (list & (1 << each)) R[each] = ram32[next++];
            if (!(list & (1 << n))) R[n] = R[n] + 4 * (next - first);
            spent += 1 + next - first;
            break;
          }
          case 57: { // STM
            const list = values[at];
            const n = (word >> 12) & 15;
            const to = R[n] - RAM;
            if (to >>> 0 > RAM_SIZE - 32 || to & 3) break loop;
            let next = to >>> 2;
            const first = next;
            for (let each = 0; each < 8; each++) if (list & (1 << each)) ram32[next++] = R[each];
            if (!(list & (1 << n))) R[n] = R[n] + 4 * (next - first);
            spent += 1 + next - first;
            break;
          }
          case 58: // SXTH
            R[d] = (R[word >> 16] << 16) >> 16;
            spent += 1;
            break;
          case 59: // SXTB
            R[d] = (R[word >> 16] << 24) >> 24;
            spent += 1;
            break;
          case 60: // UXTH
            R[d] = R[word >> 16] & 0xffff;
            spent += 1;
            break;
          case 61: // UXTB
            R[d] = R[word >> 16] & 0xff;
            spent += 1;
            break;
          case 62: { // REV
            const a = R[word >> 16];
            R[d] = (a << 24) | ((a & 0xff00) << 8) | ((a >>> 8) & 0xff00) | (a >>> 24);
            spent += 1;
            break;
          }
          case 63: // NOP
            spent += 1;
            break;
          case 64: // B
            at = (values[at] - base) >> 1;
            spent += 2;
            continue;
          case 65: // BL
            pc = values[at];
            R[14] = (base + at * 2 + 4) | 1;
            at = place(pc);
            base = pc - at * 2;
            spent += 3;
            continue;
          case 66: // BEQ
            if (result === 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 67: // BNE
            if (result !== 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 68: // BCS
            if (C) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 69: // BCC
            if (!C) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 70: // BMI
            if (result < 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 71: // BPL
            if (result >= 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 72: // BVS
            if (V < 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 73: // BVC
            if (V >= 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 74: // BHI
            if (C && result !== 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 75: // BLS
            if (!C || result === 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 76: // BGE
            if ((result ^ V) >= 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 77: // BLT
            if ((result ^ V) < 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 78: // BGT
            if ((result ^ V) >= 0 && result !== 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          case 79: // BLE
            if ((result ^ V) < 0 || result === 0) {
              at = (values[at] - base) >> 1;
              spent += 2;
              continue;
            }
            spent += 1;
            break;
          default:
            break loop;
        }
        at++;
      }
      core.N = result < 0;
      core.Z = result === 0;
      core.C = C === 1;
      core.V = V < 0;
      R[15] = base + at * 2;
      return spent;
    };
  }
}

// What runs code up to the clock's next alarm, or until the run is to stop; the cycles it took.
export function makeRun(fast) {
  return function run(pico, core, clock) {
    const { cycleNanos } = pico;
    if (!Number.isInteger(cycleNanos)) return interpret(pico, core, clock); // sums would be rounded otherwise
    let count = 0;
    while (!pico.why && !core.waiting && clock.nanosCounter >= pico.stalledUntil && pico.cycleNanos === cycleNanos) {
      if (core.interruptsUpdated && core.checkForInterrupts()) core.waiting = false;
      const limit = Math.ceil((clock.nextAlarm.nanos - clock.nanosCounter) / cycleNanos);
      const spent = fast.run(core, limit);
      clock.nanosCounter += spent * cycleNanos;
      count += spent;
      if (clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
      else count += interpret(pico, core, clock);
    }
    return count;
  };
}

// One instruction as rp2040js does it.
export function interpret(pico, core, clock) {
  pico.passes(core);
  const taken = core.executeInstruction();
  clock.nanosCounter += taken * pico.cycleNanos; // which it may have changed
  if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
  return taken;
}
