// What compiled code does with registers and flags alone. Each instruction writes itself into the body of a function
// and adds the cycles it takes.
import * as T from './decode.mjs';
import { AT, C, RESULT, SP, V, X, Y } from './locals.mjs';
import * as W from './wasm.mjs';

export class Arithmetic {
  constructor(body) {
    this.body = body;
    this.cycles = 0; // since the block began
  }

  // Give a register what is on the stack, and the flags N and Z too.
  setResult(d) {
    this.body.do(W.tee(RESULT), W.set(d));
    this.cycles += 1;
  }

  setRegister(d) {
    this.body.do(W.set(d));
    this.cycles += 1;
  }

  logic({ d, m }, operation) {
    this.body.do(W.get(d), W.get(m), operation);
    this.setResult(d);
  }

  [T.AND](each) {
    this.logic(each, W.AND);
  }

  [T.EOR](each) {
    this.logic(each, W.XOR);
  }

  [T.ORR](each) {
    this.logic(each, W.OR);
  }

  [T.MUL](each) {
    this.logic(each, W.MUL);
  }

  // The sum or difference of X and Y, and all flags of it.
  add() {
    this.body.do(W.get(X), W.get(Y), W.ADD, W.tee(RESULT), W.get(X), W.LT_U, W.set(C));
    this.overflow(X, RESULT, Y, RESULT);
    this.cycles += 1;
  }

  subtract() {
    this.body.do(W.get(X), W.get(Y), W.SUB, W.set(RESULT), W.get(X), W.get(Y), W.GE_U, W.set(C));
    this.overflow(X, Y, X, RESULT);
    this.cycles += 1;
  }

  overflow(a, b, c, d) {
    this.body.do(W.get(a), W.get(b), W.XOR, W.get(c), W.get(d), W.XOR, W.AND, W.set(V));
  }

  take(local, register) {
    this.body.do(W.get(register), W.set(local));
  }

  takeNumber(local, value) {
    this.body.do(W.number(value), W.set(local));
  }

  give(d) {
    this.body.do(W.get(RESULT), W.set(d));
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
    body.do(W.get(m), W.number(carried & 31), W.SHR_U, W.number(1), W.AND, W.set(C));
    if (by) {
      body.do(W.get(m), W.number(by), operation);
    } else {
      body.do(W.number(0));
    }
    this.setResult(d);
  }

  [T.MOVS]({ d, m }) {
    this.body.do(W.get(m));
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
    this.body.do(W.number(value));
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
    this.body.do(W.get(d), W.get(m), W.AND, W.set(RESULT));
    this.cycles += 1;
  }

  [T.BIC]({ d, m }) {
    this.body.do(W.get(d), W.get(m), W.number(-1), W.XOR, W.AND);
    this.setResult(d);
  }

  [T.MVN]({ d, m }) {
    this.body.do(W.get(m), W.number(-1), W.XOR);
    this.setResult(d);
  }

  // Shifts by a register take its low byte; WebAssembly's take five bits, as JavaScript's do.
  takeShift(d, m) {
    const { body } = this;
    this.take(X, d);
    body.do(W.get(m), W.number(255), W.AND, W.set(Y));
  }

  [T.LSL]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.do(W.get(Y));
    body.if();
    body.do(W.get(X), W.number(32), W.get(Y), W.SUB, W.SHR_U, W.number(1), W.AND, W.set(C));
    body.end();
    body.do(W.get(X), W.get(Y), W.SHL);
    this.zeroFrom32();
    this.setResult(d);
  }

  [T.LSR]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.do(W.get(X), W.get(Y), W.number(1), W.SUB, W.SHR_U, W.number(1), W.AND, W.get(Y), W.number(32));
    body.do(W.LE_U, W.AND, W.set(C), W.get(X), W.get(Y), W.SHR_U);
    this.zeroFrom32();
    this.setResult(d);
  }

  zeroFrom32() {
    this.body.do(W.number(0), W.get(Y), W.number(32), W.LT_U, W.SELECT);
  }

  [T.ASR]({ d, m }) {
    const { body } = this;
    this.takeShift(d, m);
    body.do(W.get(Y), W.number(32), W.get(Y), W.number(32), W.LT_U, W.SELECT, W.set(Y), W.get(X), W.get(Y));
    body.do(W.number(1), W.SUB, W.SHR_U, W.number(1), W.AND, W.set(C), W.get(X), W.get(Y), W.number(31));
    body.do(W.get(Y), W.number(32), W.LT_U, W.SELECT, W.SHR_S);
    this.setResult(d);
  }

  [T.ROR]({ d, m }) {
    const { body } = this;
    body.do(W.get(d), W.get(m), W.ROTR);
    this.setResult(d);
    body.do(W.get(RESULT), W.number(31), W.SHR_U, W.set(C));
  }

  // What is carried in is added to the second operand first, which may carry by itself.
  [T.ADC]({ d, m }) {
    const { body } = this;
    this.take(X, m);
    body.do(W.get(d), W.get(C), W.ADD, W.tee(Y), W.get(C), W.LT_U, W.set(AT));
    this.add();
    body.do(W.get(C), W.get(AT), W.OR, W.set(C));
    this.give(d);
  }

  [T.SBC]({ d, m }) {
    const { body } = this;
    this.take(X, d);
    body.do(W.get(m), W.number(1), W.get(C), W.SUB, W.tee(AT), W.ADD, W.tee(Y), W.get(AT), W.GE_U, W.set(AT));
    this.subtract();
    body.do(W.get(C), W.get(AT), W.AND, W.set(C));
    this.give(d);
  }

  [T.ADD_HIGH]({ d, m }) {
    this.body.do(W.get(d), W.get(m), W.ADD);
    this.setRegister(d);
  }

  [T.ADD_OFFSET]({ d, n, value }) {
    this.body.do(W.get(n), W.number(value), W.ADD);
    this.setRegister(d);
  }

  [T.ADD_SP]({ m }) {
    this.body.do(W.get(SP), W.get(m), W.ADD, W.number(~3), W.AND);
    this.setRegister(SP);
  }

  [T.MOV_HIGH]({ d, m }) {
    this.body.do(W.get(m));
    this.setRegister(d);
  }

  [T.MOV_SP]({ m }) {
    this.body.do(W.get(m), W.number(~3), W.AND);
    this.setRegister(SP);
  }

  [T.CONSTANT]({ d, value }) {
    this.body.do(W.number(value));
    this.setRegister(d);
  }

  [T.SXTH]({ d, m }) {
    this.body.do(W.get(m), W.EXTEND16);
    this.setRegister(d);
  }

  [T.SXTB]({ d, m }) {
    this.body.do(W.get(m), W.EXTEND8);
    this.setRegister(d);
  }

  [T.UXTH]({ d, m }) {
    this.mask(d, m, 0xffff);
  }

  [T.UXTB]({ d, m }) {
    this.mask(d, m, 0xff);
  }

  mask(d, m, bits) {
    this.body.do(W.get(m), W.number(bits), W.AND);
    this.setRegister(d);
  }

  [T.REV]({ d, m }) {
    const { body } = this;
    body.do(W.get(m), W.number(8), W.ROTL, W.number(0x00ff00ff), W.AND, W.get(m), W.number(8), W.ROTR);
    body.do(W.number(0xff00ff00), W.AND, W.OR);
    this.setRegister(d);
  }

  [T.NOP]() {
    this.cycles += 1;
  }
}
