// Thumb instructions of the Cortex-M0+, decoded once into one word each: what to do, and with which registers.
export const UNKNOWN = 0; // not decoded yet
export const [
  FOREIGN, // left to rp2040js's interpreter: system instructions, and what is not code
  LSL_I, LSR_I, ASR_I, MOVS, ADD_R, SUB_R, ADD_I, SUB_I, MOV_I, CMP_I,
  AND, EOR, LSL, LSR, ASR, ADC, SBC, ROR, TST, NEG, CMP, CMN, ORR, MUL, BIC, MVN,
  ADD_HIGH, ADD_OFFSET, ADD_SP, MOV_HIGH, MOV_SP, BX, BLX, MOV_PC, ADD_PC,
  LITERAL, CONSTANT, LDR_I, STR_I, LDRB_I, STRB_I, LDRH_I, STRH_I,
  LDR, STR, LDRB, STRB, LDRH, STRH, LDRSB, LDRSH,
  PUSH, POP, POP_PC, LDM, STM, SXTH, SXTB, UXTH, UXTB, REV, NOP, B, BL,
  BEQ, BNE, BCS, BCC, BMI, BPL, BVS, BVC, BHI, BLS, BGE, BLT, BGT, BLE,
] = Array.from({ length: 79 }, (_, n) => n + 1);

const SP = 13;
const LR = 14;
const PC = 15;
const PROCESSING = [AND, EOR, LSL, LSR, ASR, ADC, SBC, ROR, TST, NEG, CMP, CMN, ORR, MUL, BIC, MVN];
const BY_REGISTER = [STR, STRH, STRB, LDRSB, LDR, LDRH, LDRB, LDRSH];
const CONDITIONS = [BEQ, BNE, BCS, BCC, BMI, BPL, BVS, BVC, BHI, BLS, BGE, BLT, BGT, BLE];

const signed = (value, bits) => (value << (32 - bits)) >> (32 - bits);
const does = (operation, d = 0, n = 0, m = 0, value = 0) => [operation | (d << 8) | (n << 12) | (m << 16), value];
const NOTHING = does(FOREIGN);

function highRegisters(opcode, pc) {
  const m = (opcode >> 3) & 15;
  const d = ((opcode >> 4) & 8) | (opcode & 7);
  switch ((opcode >> 8) & 3) {
    case 0:
      if (m === PC) return NOTHING;
      return d === PC ? does(ADD_PC, 0, 0, m, pc + 4) : does(d === SP ? ADD_SP : ADD_HIGH, d, 0, m);
    case 1:
      return m === PC || d === PC ? NOTHING : does(CMP, d, 0, m);
    case 2:
      if (m === PC) return d === PC || d === SP ? NOTHING : does(CONSTANT, d, 0, 0, pc + 4);
      return d === PC ? does(MOV_PC, 0, 0, m) : does(d === SP ? MOV_SP : MOV_HIGH, d, 0, m);
    default:
      if (m === PC || opcode & 7) return NOTHING;
      return does(opcode & 0x80 ? BLX : BX, 0, 0, m);
  }
}

function miscellaneous(opcode) {
  const d = opcode & 7;
  const m = (opcode >> 3) & 7;
  if (opcode >> 7 === 0x160) return does(ADD_OFFSET, SP, SP, 0, (opcode & 127) << 2);
  if (opcode >> 7 === 0x161) return does(ADD_OFFSET, SP, SP, 0, -((opcode & 127) << 2));
  if (opcode >> 9 === 0x5a) return does(PUSH, 0, 0, 0, (opcode & 255) | (opcode & 0x100 ? 1 << LR : 0));
  if (opcode >> 9 === 0x5e) return does(opcode & 0x100 ? POP_PC : POP, 0, 0, 0, opcode & 255);
  const short = { 0x2c8: SXTH, 0x2c9: SXTB, 0x2ca: UXTH, 0x2cb: UXTB, 0x2e8: REV }[opcode >> 6];
  if (short) return does(short, d, 0, m);
  return opcode === 0xbf00 ? does(NOP) : NOTHING;
}

function wide(opcode, second, pc) {
  if (opcode >> 11 !== 30 || second >> 14 !== 3 || !(second & 0x1000)) return NOTHING;
  const sign = (opcode >> 10) & 1;
  const high = 1 - (sign ^ ((second >> 13) & 1));
  const low = 1 - (sign ^ ((second >> 11) & 1));
  const above = ((sign ? 255 : 0) << 24) | (high << 23) | (low << 22);
  return does(BL, 0, 0, 0, pc + 4 + (above | ((opcode & 1023) << 12) | ((second & 2047) << 1)));
}

// The word of an instruction, and a number that it carries: a value, an offset, registers, or where it goes.
export function decode(opcode, second, pc) {
  const d = opcode & 7;
  const n = (opcode >> 3) & 7;
  const by = (opcode >> 6) & 31;
  const large = (opcode >> 8) & 7;
  const value = opcode & 255;
  switch (opcode >> 11) {
    case 0:
      return by ? does(LSL_I, d, 0, n, by) : does(MOVS, d, 0, n);
    case 1:
      return does(LSR_I, d, 0, n, by);
    case 2:
      return does(ASR_I, d, 0, n, by);
    case 3:
      if (opcode & 0x400) return does(opcode & 0x200 ? SUB_I : ADD_I, d, n, 0, (opcode >> 6) & 7);
      return does(opcode & 0x200 ? SUB_R : ADD_R, d, n, (opcode >> 6) & 7);
    case 4:
      return does(MOV_I, large, 0, 0, value);
    case 5:
      return does(CMP_I, 0, large, 0, value);
    case 6:
      return does(ADD_I, large, large, 0, value);
    case 7:
      return does(SUB_I, large, large, 0, value);
    case 8:
      return opcode & 0x400 ? highRegisters(opcode, pc) : does(PROCESSING[(opcode >> 6) & 15], d, 0, n);
    case 9:
      return does(LITERAL, large, 0, 0, (((pc + 4) & ~3) >>> 0) + (value << 2));
    case 10:
    case 11:
      return does(BY_REGISTER[(opcode >> 9) & 7], d, n, (opcode >> 6) & 7);
    case 12:
      return does(STR_I, d, n, 0, by << 2);
    case 13:
      return does(LDR_I, d, n, 0, by << 2);
    case 14:
      return does(STRB_I, d, n, 0, by);
    case 15:
      return does(LDRB_I, d, n, 0, by);
    case 16:
      return does(STRH_I, d, n, 0, by << 1);
    case 17:
      return does(LDRH_I, d, n, 0, by << 1);
    case 18:
      return does(STR_I, large, SP, 0, value << 2);
    case 19:
      return does(LDR_I, large, SP, 0, value << 2);
    case 20:
      return does(CONSTANT, large, 0, 0, (((pc + 4) & ~3) >>> 0) + (value << 2));
    case 21:
      return does(ADD_OFFSET, large, SP, 0, value << 2);
    case 22:
    case 23:
      return miscellaneous(opcode);
    case 24:
      return does(STM, 0, large, 0, value);
    case 25:
      return does(LDM, 0, large, 0, value);
    case 26:
    case 27: {
      const condition = CONDITIONS[(opcode >> 8) & 15];
      return condition ? does(condition, 0, 0, 0, pc + 4 + signed(opcode, 8) * 2) : NOTHING;
    }
    case 28:
      return does(B, 0, 0, 0, pc + 4 + signed(opcode, 11) * 2);
    default:
      return wide(opcode, second, pc);
  }
}
