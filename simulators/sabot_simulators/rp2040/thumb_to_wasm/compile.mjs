// Compiles regions of Thumb code to WebAssembly.
//
// A compiled region does what rp2040js does with the same instructions, in as many cycles.
// Registers and flags are in locals while it runs and in the linear memory before and after. It ends, with the address
// that is next, where the region ends; before a block that may go beyond the limit of cycles; and before an
// instruction that is not for it (a peripheral that aside.mjs refuses, the end of an exception), of which nothing is
// done then. So it can stop before any instruction, exactly as the interpreter would have come to it.
import { Arithmetic } from './arithmetic.mjs';
import * as T from './decode.mjs';
import { AT, C, LIMIT, LOCALS, LR, NEXT, PC, RESULT, SP, SPENT, V, X } from './locals.mjs';
import * as M from './memory.mjs';
import { isBranch } from './regions.mjs';
import * as W from './wasm.mjs';

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

class Region extends Arithmetic {
  constructor(entry, blocks) {
    super(new W.Body(LOCALS));
    this.blocks = blocks;
    this.number = new Map(blocks.map(({ start }, n) => [start, n]));
    this.entry = this.number.get(entry);
    const instructions = blocks.flatMap((block) => block.instructions);
    this.used = registersIn(instructions.reduce((all, each) => all | usedBy(each), 0));
    this.changed = registersIn(instructions.reduce((all, each) => all | changedBy(each), 0));
  }

  compile() {
    const { body, blocks } = this;
    this.load();
    this.leave = body.block();
    body.do(W.number(this.entry), W.set(NEXT));
    this.again = body.loop();
    this.depths = new Array(blocks.length);
    for (let n = blocks.length - 1; n >= 0; n--) this.depths[n] = body.block();
    body.do(W.get(NEXT));
    body.toOneOf(this.depths);
    blocks.forEach((block, n) => {
      body.end();
      this.current = n;
      this.compileBlock(block);
    });
    body.end();
    body.end();
    this.save();
    body.do(W.get(PC));
    return body.done();
  }

  load() {
    for (const n of this.used) this.fetch(n, M.REGISTERS_AT + 4 * n);
    for (const [local, at] of STATE) this.fetch(local, at);
    this.fetch(LIMIT, M.LIMIT_AT);
  }

  fetch(local, at) {
    this.body.do(W.number(0));
    this.body.memory(W.LOAD, at);
    this.body.do(W.set(local));
  }

  save() {
    const keep = (local, at) => {
      this.body.do(W.number(0), W.get(local));
      this.body.memory(W.STORE, at);
    };
    for (const n of this.changed) keep(n, M.REGISTERS_AT + 4 * n);
    for (const [local, at] of STATE) keep(local, at);
  }

  // -- blocks ----------------------------------------------------------------------------------------

  compileBlock({ start, instructions, next }) {
    const { body } = this;
    this.cycles = 0;
    body.do(W.get(SPENT), W.number(instructions.reduce((sum, each) => sum + mostCycles(each), 0)), W.ADD);
    body.do(W.get(LIMIT), W.GT_S);
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
    body.do(W.get(SPENT), W.number(this.cycles + more), W.ADD, W.set(SPENT));
  }

  leaveAt(pc) {
    this.body.do(W.number(pc), W.set(PC));
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
      body.do(W.number(number), W.set(NEXT));
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
    else this[operation](each);
  }

  // -- memory ----------------------------------------------------------------------------------------

  // The address of an access into X, and into AT where it would be in RAM.
  takeAddress({ operation, n, m, value }) {
    const { body } = this;
    body.do(W.get(n));
    body.do(BY_OFFSET.has(operation) ? W.number(value) : W.get(m));
    body.do(W.ADD, W.tee(X), W.number(M.RAM), W.SUB, W.set(AT));
  }

  // Whether AT is below a size, and aligned: bits that are not zero then go to the top and make it large.
  isWithin(size, log) {
    const { body } = this;
    body.do(W.get(AT));
    if (log) {
      body.do(W.get(AT), W.number(32 - log), W.SHL, W.OR);
    }
    body.do(W.number(size), W.LT_U);
  }

  compileLoad(each, how) {
    const { body } = this;
    const log = how[1];
    this.takeAddress(each);
    this.isWithin(M.RAM_SIZE, log);
    body.if(true);
    body.do(W.get(AT));
    body.memory(how, M.RAM_AT);
    body.else();
    body.do(W.get(X), W.number(M.FLASH), W.SUB, W.set(AT));
    this.isWithin(M.FLASH_SIZE, log);
    body.if(true);
    body.do(W.get(AT));
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
    body.do(W.get(X), W.get(SPENT), W.number(this.cycles), W.ADD);
    body.callRead();
    body.do(W.number(0));
    body.memory(W.LOAD, M.REFUSED_AT);
    this.leaveIf(pc);
    this.spendMore();
  }

  spendMore() {
    const { body } = this;
    body.do(W.get(SPENT), W.number(0));
    body.memory(W.LOAD, M.MORE_AT);
    body.do(W.ADD, W.set(SPENT));
  }

  compileStore(each, how) {
    const { body } = this;
    this.takeAddress(each);
    this.isWithin(M.RAM_SIZE, how[1]);
    body.if();
    body.do(W.get(AT), W.get(each.d));
    body.memory(how, M.RAM_AT);
    body.else();
    if (how === W.STORE) this.compileWrite(each.pc, each.d);
    else this.stopHere(each.pc);
    body.end();
    this.cycles += 2;
  }

  compileWrite(pc, d) {
    const { body } = this;
    body.do(W.get(X), W.get(d));
    body.callWrite();
    this.leaveIf(pc);
    this.spendMore();
  }

  [T.LITERAL]({ d, value, pc }) {
    const { body } = this;
    const at = { 0: M.ROM_AT, 1: M.FLASH_AT - M.FLASH, 2: M.RAM_AT - M.RAM }[pc >>> 28] + value;
    body.do(W.number(0));
    body.memory(W.LOAD, at);
    this.setRegister(d);
    this.cycles += 1;
  }

  // Several words from where a register points to, if all of it is in RAM: AT is where.
  takeWords(n, below, room, pc) {
    const { body } = this;
    body.do(W.get(n), W.number(M.RAM + below), W.SUB, W.set(AT));
    this.isWithin(M.RAM_SIZE - room, 2);
    body.do(W.EQZ);
    this.leaveIf(pc);
  }

  storeWords(registers) {
    const { body } = this;
    registers.forEach((register, n) => {
      body.do(W.get(AT), W.get(register));
      body.memory(W.STORE, M.RAM_AT + 4 * n);
    });
  }

  loadWords(registers) {
    const { body } = this;
    registers.forEach((register, n) => {
      body.do(W.get(AT));
      body.memory(W.LOAD, M.RAM_AT + 4 * n);
      body.do(W.set(register));
    });
  }

  moveBy(n, bytes) {
    this.body.do(W.get(n), W.number(bytes), W.ADD, W.set(n));
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
    body.do(W.get(AT));
    body.memory(W.LOAD, M.RAM_AT + 4 * registers.length);
    body.do(W.tee(PC));
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
    this.body.do(W.number(28), W.SHR_U, W.number(15), W.EQ);
    this.leaveIf(pc);
  }

  // To where PC says, but for its lowest bit.
  leaveForPc(cycles) {
    const { body } = this;
    body.do(W.get(PC), W.number(~1), W.AND, W.set(PC));
    this.spend(cycles);
    body.to(this.leave);
  }

  [T.BX]({ m, pc }) {
    this.body.do(W.get(m), W.tee(PC));
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
    this.body.do(W.get(m), W.number(value), W.ADD, W.set(PC));
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
    body.do(W.get(flag === SIGNS ? RESULT : flag));
    if (flag === SIGNS) {
      body.do(W.get(V), W.XOR);
    }
    body.do(W.number(0), comparison);
    if (andAlso === undefined) return;
    body.do(W.get(RESULT), W.number(0), ...andAlso);
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
