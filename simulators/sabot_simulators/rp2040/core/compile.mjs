// Compiles regions of Thumb code to WebAssembly.
//
// A compiled region does what the interpreter in fast_core.mjs does with the same instructions, in as many cycles.
// Registers and flags are in locals while it runs and in the linear memory before and after. It ends, with the address
// that is next, where the region ends; before a block that may go beyond the limit of cycles; and before an
// instruction that is not for it (memory other than RAM, flash and ROM; the end of an exception), of which nothing is
// done then. So it can stop before any instruction, exactly as the interpreter would have come to it.
import * as T from './decode.mjs';
import * as M from './memory.mjs';
import { isBranch } from './regions.mjs';
import * as W from './wasm.mjs';

const SP = 13;
const LR = 14;
// Locals, after the registers.
const [RESULT, C, V, SPENT, LIMIT, PC, NEXT, X, Y, AT] = Array.from({ length: 10 }, (_, n) => 15 + n);
const LOCALS = 25;
const STATE = [
  [RESULT, M.RESULT_AT],
  [C, M.CARRY_AT],
  [V, M.OVERFLOW_AT],
  [SPENT, M.SPENT_AT],
];

const range = (first, last) => Array.from({ length: last - first + 1 }, (_, n) => first + n); // of decode.mjs's order

const LOADS = {
  [T.LDR_I]: W.LOAD, [T.LDRB_I]: W.LOAD8_U, [T.LDRH_I]: W.LOAD16_U,
  [T.LDR]: W.LOAD, [T.LDRB]: W.LOAD8_U, [T.LDRH]: W.LOAD16_U, [T.LDRSB]: W.LOAD8_S, [T.LDRSH]: W.LOAD16_S,
};
const STORES = {
  [T.STR_I]: W.STORE, [T.STRB_I]: W.STORE8, [T.STRH_I]: W.STORE16,
  [T.STR]: W.STORE, [T.STRB]: W.STORE8, [T.STRH]: W.STORE16,
};
const BY_OFFSET = new Set([T.LDR_I, T.LDRB_I, T.LDRH_I, T.STR_I, T.STRB_I, T.STRH_I]);
const SEVERAL = new Set([T.PUSH, T.POP, T.POP_PC, T.LDM, T.STM]);
const ALWAYS_ONE = new Set([...range(T.LSL_I, T.MOV_SP), T.CONSTANT, ...range(T.SXTH, T.NOP)]);
const COMPARES = new Set([T.CMP_I, T.CMP, T.CMN, T.TST]);
const LOGIC = { [T.AND]: W.AND, [T.EOR]: W.XOR, [T.ORR]: W.OR, [T.MUL]: W.MUL };

// The flag of each branch, how it compares with zero, and how the flag Z joins in.
const SIGNS = -1; // whether N and V are the same
const CONDITIONS = {
  [T.BEQ]: [RESULT, W.EQ],
  [T.BNE]: [RESULT, W.NE],
  [T.BCS]: [C, W.NE],
  [T.BCC]: [C, W.EQ],
  [T.BMI]: [RESULT, W.LT_S],
  [T.BPL]: [RESULT, W.GE_S],
  [T.BVS]: [V, W.LT_S],
  [T.BVC]: [V, W.GE_S],
  [T.BHI]: [C, W.NE, [W.NE, W.AND]],
  [T.BLS]: [C, W.EQ, [W.EQ, W.OR]],
  [T.BGE]: [SIGNS, W.GE_S],
  [T.BLT]: [SIGNS, W.LT_S],
  [T.BGT]: [SIGNS, W.GE_S, [W.NE, W.AND]],
  [T.BLE]: [SIGNS, W.LT_S, [W.EQ, W.OR]],
};

const registersIn = (list) => Array.from({ length: 15 }, (_, n) => n).filter((n) => list & (1 << n));

// The function of a region whose blocks are given.
export function compileRegion(entry, blocks) {
  return new Region(entry, blocks).compile();
}

class Region {
  constructor(entry, blocks) {
    this.blocks = blocks;
    this.number = new Map(blocks.map(({ start }, n) => [start, n]));
    this.entry = this.number.get(entry);
    this.body = new W.Body(LOCALS);
    const instructions = blocks.flatMap((block) => block.instructions);
    this.used = registersIn(instructions.reduce((all, each) => all | usedBy(each), 0));
    this.changed = registersIn(instructions.reduce((all, each) => all | changedBy(each), 0));
  }

  compile() {
    const { body, blocks } = this;
    this.load();
    this.leave = body.block();
    body.number(this.entry);
    body.set(NEXT);
    this.again = body.loop();
    this.depths = new Array(blocks.length);
    for (let n = blocks.length - 1; n >= 0; n--) this.depths[n] = body.block();
    body.get(NEXT);
    body.toOneOf(this.depths);
    blocks.forEach((block, n) => {
      body.end();
      this.current = n;
      this.compileBlock(block);
    });
    body.end();
    body.end();
    this.save();
    body.get(PC);
    return body.done();
  }

  load() {
    for (const n of this.used) this.fetch(n, M.REGISTERS_AT + 4 * n);
    for (const [local, at] of STATE) this.fetch(local, at);
    this.fetch(LIMIT, M.LIMIT_AT);
  }

  fetch(local, at) {
    this.body.number(0);
    this.body.memory(W.LOAD, at);
    this.body.set(local);
  }

  save() {
    const keep = (local, at) => {
      this.body.number(0);
      this.body.get(local);
      this.body.memory(W.STORE, at);
    };
    for (const n of this.changed) keep(n, M.REGISTERS_AT + 4 * n);
    for (const [local, at] of STATE) keep(local, at);
  }

  // -- blocks ----------------------------------------------------------------------------------------

  compileBlock({ start, instructions, next }) {
    const { body } = this;
    this.cycles = 0; // since the block began
    body.get(SPENT);
    body.number(instructions.reduce((sum, each) => sum + mostCycles(each), 0));
    body.do(W.ADD);
    body.get(LIMIT);
    body.do(W.GT_S);
    body.if();
    this.stopAt(start);
    body.end();
    for (const each of instructions) this.compileInstruction(each);
    if (next === null) return;
    this.spend(0);
    this.goTo(next);
  }

  // Add the cycles of the block so far, and some.
  spend(more) {
    const { body } = this;
    if (this.cycles + more === 0) return;
    body.get(SPENT);
    body.number(this.cycles + more);
    body.do(W.ADD);
    body.set(SPENT);
  }

  leaveAt(pc) {
    this.body.number(pc);
    this.body.set(PC);
    this.body.to(this.leave);
  }

  // Leave, and do not go on with compiled code: the lowest bit says so.
  stopAt(pc) {
    this.leaveAt(pc | 1);
  }

  // Go on with a block, or leave if there is none for it.
  goTo(pc) {
    const { body } = this;
    const number = this.number.get(pc);
    if (number === undefined) {
      this.leaveAt(pc);
    } else if (number > this.current) {
      body.to(this.depths[number]);
    } else {
      body.number(number);
      body.set(NEXT);
      body.to(this.again);
    }
  }

  // Leave before an instruction, without condition.
  stopHere(pc) {
    this.spend(0);
    this.stopAt(pc);
  }

  // Leave before an instruction of which nothing has been done; a number that tells whether is on the stack.
  leaveIf(pc) {
    const { body } = this;
    body.if();
    this.stopHere(pc);
    body.end();
  }

  // -- instructions ----------------------------------------------------------------------------------

  compileInstruction(each) {
    const { operation } = each;
    if (operation in LOADS) this.compileLoad(each, LOADS[operation]);
    else if (operation in STORES) this.compileStore(each, STORES[operation]);
    else if (isBranch(operation)) this.compileBranch(each);
    else if (operation in LOGIC) this.compileLogic(each, LOGIC[operation]);
    else this[operation](each);
  }

  // Give a register what is on the stack, and the flags N and Z too.
  setResult(d) {
    this.body.tee(RESULT);
    this.body.set(d);
    this.cycles += 1;
  }

  setRegister(d) {
    this.body.set(d);
    this.cycles += 1;
  }

  compileLogic({ d, m }, operation) {
    const { body } = this;
    body.get(d);
    body.get(m);
    body.do(operation);
    this.setResult(d);
  }

  // The sum or difference of X and Y, and all flags of it.
  add() {
    const { body } = this;
    body.get(X);
    body.get(Y);
    body.do(W.ADD);
    body.tee(RESULT);
    body.get(X);
    body.do(W.LT_U);
    body.set(C);
    this.overflow(X, RESULT, Y, RESULT);
    this.cycles += 1;
  }

  subtract() {
    const { body } = this;
    body.get(X);
    body.get(Y);
    body.do(W.SUB);
    body.set(RESULT);
    body.get(X);
    body.get(Y);
    body.do(W.GE_U);
    body.set(C);
    this.overflow(X, Y, X, RESULT);
    this.cycles += 1;
  }

  overflow(a, b, c, d) {
    const { body } = this;
    body.get(a);
    body.get(b);
    body.do(W.XOR);
    body.get(c);
    body.get(d);
    body.do(W.XOR, W.AND);
    body.set(V);
  }

  take(local, register) {
    this.body.get(register);
    this.body.set(local);
  }

  takeNumber(local, value) {
    this.body.number(value);
    this.body.set(local);
  }

  give(d) {
    this.body.get(RESULT);
    this.body.set(d);
  }

  [T.LSL_I]({ d, m, value }) {
    this.shiftByNumber(d, m, W.SHL, value, 32 - value);
  }

  [T.LSR_I]({ d, m, value }) {
    this.shiftByNumber(d, m, W.SHR_U, value, value - 1);
  }

  [T.ASR_I]({ d, m, value }) {
    this.shiftByNumber(d, m, W.SHR_S, value || 31, value - 1);
  }

  // By no bits (LSR_I alone, where it means 32) is nothing left.
  shiftByNumber(d, m, operation, by, carried) {
    const { body } = this;
    body.get(m);
    body.number(carried & 31);
    body.do(W.SHR_U);
    body.number(1);
    body.do(W.AND);
    body.set(C);
    if (by) {
      body.get(m);
      body.number(by);
      body.do(operation);
    } else {
      body.number(0);
    }
    this.setResult(d);
  }

  [T.MOVS]({ d, m }) {
    this.body.get(m);
    this.setResult(d);
  }

  [T.ADD_R]({ d, n, m }) {
    this.take(X, n);
    this.take(Y, m);
    this.add();
    this.give(d);
  }

  [T.SUB_R]({ d, n, m }) {
    this.take(X, n);
    this.take(Y, m);
    this.subtract();
    this.give(d);
  }

  [T.ADD_I]({ d, n, value }) {
    this.take(X, n);
    this.takeNumber(Y, value);
    this.add();
    this.give(d);
  }

  [T.SUB_I]({ d, n, value }) {
    this.take(X, n);
    this.takeNumber(Y, value);
    this.subtract();
    this.give(d);
  }

  [T.MOV_I]({ d, value }) {
    this.body.number(value);
    this.setResult(d);
  }

  [T.CMP_I]({ n, value }) {
    this.take(X, n);
    this.takeNumber(Y, value);
    this.subtract();
  }

  [T.CMP]({ d, m }) {
    this.take(X, d);
    this.take(Y, m);
    this.subtract();
  }

  [T.CMN]({ d, m }) {
    this.take(X, d);
    this.take(Y, m);
    this.add();
  }

  [T.NEG]({ d, m }) {
    this.takeNumber(X, 0);
    this.take(Y, m);
    this.subtract();
    this.give(d);
  }

  [T.TST]({ d, m }) {
    const { body } = this;
    body.get(d);
    body.get(m);
    body.do(W.AND);
    body.set(RESULT);
    this.cycles += 1;
  }

  [T.BIC]({ d, m }) {
    const { body } = this;
    body.get(d);
    body.get(m);
    body.number(-1);
    body.do(W.XOR, W.AND);
    this.setResult(d);
  }

  [T.MVN]({ d, m }) {
    const { body } = this;
    body.get(m);
    body.number(-1);
    body.do(W.XOR);
    this.setResult(d);
  }

  // Shifts by a register take its low byte; WebAssembly's take five bits, as JavaScript's do.
  takeShift(d, m) {
    const { body } = this;
    this.take(X, d);
    body.get(m);
    body.number(255);
    body.do(W.AND);
    body.set(Y);
  }

  [T.LSL]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.get(Y);
    body.if();
    body.get(X);
    body.number(32);
    body.get(Y);
    body.do(W.SUB, W.SHR_U);
    body.number(1);
    body.do(W.AND);
    body.set(C);
    body.end();
    body.get(X);
    body.get(Y);
    body.do(W.SHL);
    this.zeroFrom32();
    this.setResult(d);
  }

  [T.LSR]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.get(X);
    body.get(Y);
    body.number(1);
    body.do(W.SUB, W.SHR_U);
    body.number(1);
    body.do(W.AND);
    body.get(Y);
    body.number(32);
    body.do(W.LE_U, W.AND);
    body.set(C);
    body.get(X);
    body.get(Y);
    body.do(W.SHR_U);
    this.zeroFrom32();
    this.setResult(d);
  }

  zeroFrom32() {
    const { body } = this;
    body.number(0);
    body.get(Y);
    body.number(32);
    body.do(W.LT_U, W.SELECT);
  }

  [T.ASR]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.get(Y);
    body.number(32);
    body.get(Y);
    body.number(32);
    body.do(W.LT_U, W.SELECT);
    body.set(Y);
    body.get(X);
    body.get(Y);
    body.number(1);
    body.do(W.SUB, W.SHR_U);
    body.number(1);
    body.do(W.AND);
    body.set(C);
    body.get(X);
    body.get(Y);
    body.number(31);
    body.get(Y);
    body.number(32);
    body.do(W.LT_U, W.SELECT, W.SHR_S);
    this.setResult(d);
  }

  [T.ROR]({ d, m }) {
    const { body } = this;
    body.get(d);
    body.get(m);
    body.do(W.ROTR);
    this.setResult(d);
    body.get(RESULT);
    body.number(31);
    body.do(W.SHR_U);
    body.set(C);
  }

  // What is carried in is added to the second operand first, which may carry by itself.
  [T.ADC]({ d, m }) {
    const { body } = this;
    this.take(X, m);
    body.get(d);
    body.get(C);
    body.do(W.ADD);
    body.tee(Y);
    body.get(C);
    body.do(W.LT_U);
    body.set(AT);
    this.add();
    body.get(C);
    body.get(AT);
    body.do(W.OR);
    body.set(C);
    this.give(d);
  }

  [T.SBC]({ d, m }) {
    const { body } = this;
    this.take(X, d);
    body.get(m);
    body.number(1);
    body.get(C);
    body.do(W.SUB);
    body.tee(AT);
    body.do(W.ADD);
    body.tee(Y);
    body.get(AT);
    body.do(W.GE_U);
    body.set(AT);
    this.subtract();
    body.get(C);
    body.get(AT);
    body.do(W.AND);
    body.set(C);
    this.give(d);
  }

  [T.ADD_HIGH]({ d, m }) {
    const { body } = this;
    body.get(d);
    body.get(m);
    body.do(W.ADD);
    this.setRegister(d);
  }

  [T.ADD_OFFSET]({ d, n, value }) {
    const { body } = this;
    body.get(n);
    body.number(value);
    body.do(W.ADD);
    this.setRegister(d);
  }

  [T.ADD_SP]({ m }) {
    const { body } = this;
    body.get(SP);
    body.get(m);
    body.do(W.ADD);
    body.number(~3);
    body.do(W.AND);
    this.setRegister(SP);
  }

  [T.MOV_HIGH]({ d, m }) {
    this.body.get(m);
    this.setRegister(d);
  }

  [T.MOV_SP]({ m }) {
    const { body } = this;
    body.get(m);
    body.number(~3);
    body.do(W.AND);
    this.setRegister(SP);
  }

  [T.CONSTANT]({ d, value }) {
    this.body.number(value);
    this.setRegister(d);
  }

  [T.SXTH]({ d, m }) {
    this.body.get(m);
    this.body.do(W.EXTEND16);
    this.setRegister(d);
  }

  [T.SXTB]({ d, m }) {
    this.body.get(m);
    this.body.do(W.EXTEND8);
    this.setRegister(d);
  }

  [T.UXTH]({ d, m }) {
    this.mask(d, m, 0xffff);
  }

  [T.UXTB]({ d, m }) {
    this.mask(d, m, 0xff);
  }

  mask(d, m, bits) {
    const { body } = this;
    body.get(m);
    body.number(bits);
    body.do(W.AND);
    this.setRegister(d);
  }

  [T.REV]({ d, m }) {
    const { body } = this;
    body.get(m);
    body.number(8);
    body.do(W.ROTL);
    body.number(0x00ff00ff);
    body.do(W.AND);
    body.get(m);
    body.number(8);
    body.do(W.ROTR);
    body.number(0xff00ff00);
    body.do(W.AND, W.OR);
    this.setRegister(d);
  }

  [T.NOP]() {
    this.cycles += 1;
  }

  // -- memory ----------------------------------------------------------------------------------------

  // The address of an access into X, and into AT where it would be in RAM.
  takeAddress({ operation, n, m, value }) {
    const { body } = this;
    body.get(n);
    if (BY_OFFSET.has(operation)) body.number(value);
    else body.get(m);
    body.do(W.ADD);
    body.tee(X);
    body.number(M.RAM);
    body.do(W.SUB);
    body.set(AT);
  }

  // Whether AT is below a size, and aligned: bits that are not zero then go to the top and make it large.
  isWithin(size, log) {
    const { body } = this;
    body.get(AT);
    if (log) {
      body.get(AT);
      body.number(32 - log);
      body.do(W.SHL, W.OR);
    }
    body.number(size);
    body.do(W.LT_U);
  }

  compileLoad(each, how) {
    const { body } = this;
    const log = how[1];
    this.takeAddress(each);
    this.isWithin(M.RAM_SIZE, log);
    body.if(true);
    body.get(AT);
    body.memory(how, M.RAM_AT);
    body.else();
    body.get(X);
    body.number(M.FLASH);
    body.do(W.SUB);
    body.set(AT);
    this.isWithin(M.FLASH_SIZE, log);
    body.if(true);
    body.get(AT);
    body.memory(how, M.FLASH_AT);
    body.else();
    if (how === W.LOAD) this.compileRead(each.pc);
    else this.stopHere(each.pc);
    body.end();
    body.end();
    this.setRegister(each.d);
    this.cycles += 1;
  }

  // From an address (X) that is neither in RAM nor in flash.
  compileRead(pc) {
    const { body } = this;
    body.get(X);
    body.get(SPENT);
    body.number(this.cycles);
    body.do(W.ADD);
    body.callRead();
    body.number(0);
    body.memory(W.LOAD, M.REFUSED_AT);
    this.leaveIf(pc);
    this.spendMore();
  }

  spendMore() {
    const { body } = this;
    body.get(SPENT);
    body.number(0);
    body.memory(W.LOAD, M.MORE_AT);
    body.do(W.ADD);
    body.set(SPENT);
  }

  compileStore(each, how) {
    const { body } = this;
    this.takeAddress(each);
    this.isWithin(M.RAM_SIZE, how[1]);
    body.if();
    body.get(AT);
    body.get(each.d);
    body.memory(how, M.RAM_AT);
    body.else();
    if (how === W.STORE) this.compileWrite(each.pc, each.d);
    else this.stopHere(each.pc);
    body.end();
    this.cycles += 2;
  }

  compileWrite(pc, d) {
    const { body } = this;
    body.get(X);
    body.get(d);
    body.callWrite();
    this.leaveIf(pc);
    this.spendMore();
  }

  [T.LITERAL]({ d, value, pc }) {
    const { body } = this;
    const at = { 0: M.ROM_AT, 1: M.FLASH_AT - M.FLASH, 2: M.RAM_AT - M.RAM }[pc >>> 28] + value;
    body.number(0);
    body.memory(W.LOAD, at);
    this.setRegister(d);
    this.cycles += 1;
  }

  // Several words from where a register points to, if all of it is in RAM: AT is where.
  takeWords(n, below, room, pc) {
    const { body } = this;
    body.get(n);
    body.number(M.RAM + below);
    body.do(W.SUB);
    body.set(AT);
    this.isWithin(M.RAM_SIZE - room, 2);
    body.do(W.EQZ);
    this.leaveIf(pc);
  }

  storeWords(registers) {
    const { body } = this;
    registers.forEach((register, n) => {
      body.get(AT);
      body.get(register);
      body.memory(W.STORE, M.RAM_AT + 4 * n);
    });
  }

  loadWords(registers) {
    const { body } = this;
    registers.forEach((register, n) => {
      body.get(AT);
      body.memory(W.LOAD, M.RAM_AT + 4 * n);
      body.set(register);
    });
  }

  moveBy(n, bytes) {
    const { body } = this;
    body.get(n);
    body.number(bytes);
    body.do(W.ADD);
    body.set(n);
  }

  [T.PUSH]({ value, pc }) {
    const registers = registersIn(value);
    this.takeWords(SP, 4 * registers.length, 36, pc);
    this.storeWords(registers);
    this.moveBy(SP, -4 * registers.length);
    this.cycles += 1 + registers.length - (value >> LR);
  }

  [T.POP]({ value, pc }) {
    const registers = registersIn(value);
    this.takeWords(SP, 0, 32, pc);
    this.loadWords(registers);
    this.moveBy(SP, 4 * registers.length);
    this.cycles += 1 + registers.length;
  }

  [T.POP_PC]({ value, pc }) {
    const { body } = this;
    const registers = registersIn(value);
    this.takeWords(SP, 0, 36, pc);
    body.get(AT);
    body.memory(W.LOAD, M.RAM_AT + 4 * registers.length);
    body.tee(PC);
    this.leaveAtExceptionsEnd(pc);
    this.loadWords(registers);
    this.moveBy(SP, 4 * registers.length + 4);
    this.leaveForPc(3 + registers.length);
  }

  [T.LDM]({ n, value, pc }) {
    const registers = registersIn(value);
    this.takeWords(n, 0, 32, pc);
    this.loadWords(registers);
    if (!registers.includes(n)) this.moveBy(n, 4 * registers.length);
    this.cycles += 1 + registers.length;
  }

  [T.STM]({ n, value, pc }) {
    const registers = registersIn(value);
    this.takeWords(n, 0, 32, pc);
    this.storeWords(registers);
    if (!registers.includes(n)) this.moveBy(n, 4 * registers.length);
    this.cycles += 1 + registers.length;
  }

  // -- elsewhere -------------------------------------------------------------------------------------

  leaveAtExceptionsEnd(pc) {
    const { body } = this;
    body.number(28);
    body.do(W.SHR_U);
    body.number(15);
    body.do(W.EQ);
    this.leaveIf(pc);
  }

  // To where PC says, but for its lowest bit.
  leaveForPc(cycles) {
    const { body } = this;
    body.get(PC);
    body.number(~1);
    body.do(W.AND);
    body.set(PC);
    this.spend(cycles);
    body.to(this.leave);
  }

  [T.BX]({ m, pc }) {
    this.body.get(m);
    this.body.tee(PC);
    this.leaveAtExceptionsEnd(pc);
    this.leaveForPc(2);
  }

  // In this order, as rp2040js has it: by LR itself it goes to the next instruction.
  [T.BLX]({ m, pc }) {
    this.takeNumber(LR, (pc + 2) | 1);
    this.take(PC, m);
    this.leaveForPc(2);
  }

  [T.MOV_PC]({ m }) {
    this.take(PC, m);
    this.leaveForPc(2);
  }

  [T.ADD_PC]({ m, value }) {
    const { body } = this;
    body.get(m);
    body.number(value);
    body.do(W.ADD);
    body.set(PC);
    this.leaveForPc(2);
  }

  [T.BL]({ value, pc }) {
    this.takeNumber(LR, (pc + 4) | 1);
    this.spend(3);
    this.leaveAt(value);
  }

  [T.B]({ value }) {
    this.spend(2);
    this.goTo(value);
  }

  compileBranch({ operation, value }) {
    const { body } = this;
    this.condition(operation);
    body.if();
    this.spend(2);
    this.goTo(value);
    body.end();
    this.cycles += 1;
  }

  // Whether a branch is taken, from the flags it looks at.
  condition(operation) {
    const { body } = this;
    const [flag, comparison, andAlso] = CONDITIONS[operation];
    body.get(flag === SIGNS ? RESULT : flag);
    if (flag === SIGNS) {
      body.get(V);
      body.do(W.XOR);
    }
    body.number(0);
    body.do(comparison);
    if (andAlso === undefined) return;
    body.get(RESULT);
    body.number(0);
    body.do(...andAlso);
  }
}

// The registers an instruction may read or write, and perhaps some more: a bit for each.
function usedBy({ operation, d, n, m, value }) {
  const named = (1 << d) | (1 << n) | (1 << m);
  if (SEVERAL.has(operation)) return named | (value & 0xffff) | (1 << SP);
  return operation === T.BL || operation === T.BLX ? named | (1 << LR) : named;
}

// Those it may write, and perhaps some more that it uses.
function changedBy({ operation, d, n, value }) {
  if (operation in STORES || COMPARES.has(operation) || isBranch(operation)) return 0;
  if (SEVERAL.has(operation)) return (value & 0xffff) | (1 << n) | (1 << SP);
  return operation === T.BL || operation === T.BLX ? 1 << LR : 1 << d;
}

// As many cycles as an instruction can take at most: words may be read from peripherals too.
function mostCycles({ operation, value }) {
  if (SEVERAL.has(operation)) return 3 + registersIn(value).length;
  if (LOADS[operation] === W.LOAD) return 4;
  if (operation === T.BL) return 3;
  return ALWAYS_ONE.has(operation) ? 1 : 2;
}

// Runs compiled regions, one after the other, until one stops (1) or the next is not compiled (0).
export function makeDispatcher(world) {
  const body = new W.Body(2);
  const [pc, at] = [0, 1];
  body.number(0);
  body.memory(W.LOAD, M.PC_AT);
  body.number(~1); // an exception begins with the lowest bit set
  body.do(W.AND);
  body.set(pc);
  const out = body.block();
  const again = body.loop();
  compilePlace(body, pc, at, out);
  body.number(1);
  body.do(W.SHL);
  body.memory(W.LOAD, M.ENTRIES_AT);
  body.tee(at);
  body.number(0);
  body.do(W.LE_S);
  body.toIf(out);
  body.get(at);
  body.callIndirect();
  body.tee(pc);
  body.number(1);
  body.do(W.AND, W.EQZ);
  body.toIf(again);
  body.end();
  body.end();
  body.number(0);
  body.get(pc);
  body.number(~1);
  body.do(W.AND);
  body.memory(W.STORE, M.PC_AT);
  body.get(pc);
  body.number(1);
  body.do(W.AND);
  return W.instantiate([body.done()], world)[0];
}

// Twice the place of an address, as place() in memory.mjs has it; out where there is no code.
function compilePlace(body, pc, at, out) {
  body.get(pc);
  body.number(M.FLASH);
  body.do(W.SUB);
  body.tee(at);
  body.number(M.FLASH_SIZE);
  body.do(W.LT_U);
  body.if(true);
  body.get(at);
  body.else();
  body.get(pc);
  body.number(M.RAM);
  body.do(W.SUB);
  body.tee(at);
  body.number(M.RAM_SIZE);
  body.do(W.LT_U);
  body.if(true);
  body.get(at);
  body.number(2 * M.FLASH_PLACES);
  body.do(W.ADD);
  body.else();
  body.get(pc);
  body.number(M.ROM_SIZE);
  body.do(W.GE_U);
  body.toIf(out);
  body.get(pc);
  body.number(2 * M.ROM_PLACE);
  body.do(W.ADD);
  body.end();
  body.end();
}
