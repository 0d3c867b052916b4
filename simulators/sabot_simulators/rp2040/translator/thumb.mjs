// Thumb instructions of the Cortex-M0+, each with the cycles and to the letter what rp2040js's interpreter does.
// `translate` gives the text of one, or says no: what is not here is left to the interpreter.

const SP = 13;
const LR = 14;
const PC = 15;

const signed = (value, bits) => (value << (32 - bits)) >> (32 - bits);

function added(block, first, second) {
  const a = block.value(first);
  const b = block.value(second);
  const sum = block.value(`(${a}+${b})|0`);
  block.setFlags({
    N: `${sum}<0`,
    Z: `${sum}===0`,
    C: `(${sum}>>>0)<(${a}>>>0)`,
    V: `((${a}^${sum})&(${b}^${sum}))<0`,
  });
  return sum;
}

function subtracted(block, first, second) {
  const a = block.value(first);
  const b = block.value(second);
  const rest = block.value(`(${a}-${b})|0`);
  const flags = {
    N: `${rest}<0`,
    Z: `${rest}===0`,
    C: `(${a}>>>0)>=(${b}>>>0)`,
    V: `((${a}^${b})&(${a}^${rest}))<0`,
  };
  block.setFlags(flags, [a, b]);
  return rest;
}

function withCarry(block, d, m, subtract) {
  const carry = block.flags.C;
  if (!subtract) {
    const a = block.value(`${m}>>>0`);
    const b = block.value(`(${d}>>>0)+((${carry})?1:0)`);
    const sum = block.value(`${a}+${b}`);
    const N = `(${sum}|0)<0`;
    block.setFlags({ N, Z: `(${sum}|0)===0`, C: `${sum}!==(${sum}>>>0)`, V: `(${sum}|0)!==(${a}|0)+(${b}|0)` });
    return `${sum}|0`;
  }
  const a = block.value(`${d}>>>0`);
  const b = block.value(`(${m}>>>0)+((${carry})?0:1)`);
  const rest = block.value(`${a}-${b}`);
  const V = `(((${a}^${b})&(${a}^${rest}))|0)<0`;
  block.setFlags({ N: `(${rest}|0)<0`, Z: `(${rest}|0)===0`, C: `${a}>=${b}`, V });
  return `${rest}|0`;
}

function shiftedBy(block, d, m, kind) {
  const input = block.value(d);
  const by = block.value(`${m}&255`);
  const carry = block.value(block.flags.C);
  let result;
  let C;
  if (kind === 'left') {
    result = block.value(`${by}>=32?0:${input}<<${by}`);
    C = `${by}?(${input}&(1<<(32-${by})))!==0:${carry}`;
  } else if (kind === 'right') {
    result = block.value(`${by}<32?(${input}>>>${by})|0:0`);
    C = `${by}<=32?((${input}>>>(${by}-1))&1)!==0:false`;
  } else if (kind === 'arithmetic') {
    const most = block.value(`${by}<32?${by}:32`);
    result = block.value(`${most}<32?${input}>>${most}:${input}>>31`);
    C = `(${input}&(1<<(${most}-1)))!==0`;
  } else {
    const turn = block.value(`${by}%32`);
    result = block.value(`(${input}>>>${turn})|(${input}<<(32-${turn}))`);
    C = `${result}<0`;
  }
  block.setFlags({ N: `${result}<0`, Z: `${result}===0`, C });
  return result;
}

function dataProcessing(block, opcode) {
  const d = opcode & 7;
  const D = block.register(d);
  const M = block.register((opcode >> 3) & 7);
  const plain = (text) => {
    const result = block.value(text);
    block.flagsOf(result);
    return result;
  };
  switch ((opcode >> 6) & 15) {
    case 0:
      block.set(d, plain(`${D}&${M}`));
      break;
    case 1:
      block.set(d, plain(`${D}^${M}`));
      break;
    case 2:
      block.set(d, shiftedBy(block, D, M, 'left'));
      break;
    case 3:
      block.set(d, shiftedBy(block, D, M, 'right'));
      break;
    case 4:
      block.set(d, shiftedBy(block, D, M, 'arithmetic'));
      break;
    case 5:
      block.set(d, withCarry(block, D, M, false));
      break;
    case 6:
      block.set(d, withCarry(block, D, M, true));
      break;
    case 7:
      block.set(d, shiftedBy(block, D, M, 'round'));
      break;
    case 8:
      plain(`${D}&${M}`);
      break;
    case 9:
      block.set(d, subtracted(block, '0', M));
      break;
    case 10:
      subtracted(block, D, M);
      break;
    case 11:
      added(block, D, M);
      break;
    case 12:
      block.set(d, plain(`${D}|${M}`));
      break;
    case 13:
      block.set(d, plain(`Math.imul(${D},${M})`));
      break;
    case 14:
      block.set(d, plain(`${D}&~${M}`));
      break;
    default:
      block.set(d, plain(`~${M}`));
  }
  block.cycles += 1;
  return true;
}

function highRegisters(block, opcode) {
  const m = (opcode >> 3) & 15;
  const d = ((opcode >> 4) & 8) | (opcode & 7);
  const kind = (opcode >> 8) & 3;
  const valueOf = (number) => (number === PC ? `${(block.pc + 4) | 0}` : block.register(number));
  if (kind === 3) {
    if (m === PC || opcode & 7) return false;
    const target = block.value(valueOf(m));
    if (opcode & 0x80) {
      block.set(LR, `${(block.pc + 2) | 1}`);
    } else {
      block.emit(`if((${target}>>>28)===15){${block.notForUs()}}`);
    }
    block.leaveTo(`${target}&~1`, 2);
    return true;
  }
  if (kind === 1) {
    if (m === PC || d === PC) return false;
    subtracted(block, valueOf(d), valueOf(m));
    block.cycles += 1;
    return true;
  }
  const result = kind === 0 ? `(${valueOf(d)}+${valueOf(m)})|0` : valueOf(m);
  if (d === PC) {
    block.leaveTo(`(${result})&~1`, 2);
    return true;
  }
  block.set(d, d === SP ? `(${result})&~3` : result);
  block.cycles += 1;
  return true;
}

function shiftImmediate(block, opcode) {
  const kind = (opcode >> 11) & 3;
  const by = (opcode >> 6) & 31;
  const m = (opcode >> 3) & 7;
  const input = block.value(block.register(m));
  let result;
  let C = null;
  if (kind === 0) {
    result = block.constants.has(m) ? `${block.constants.get(m) << by}` : block.value(`${input}<<${by}`);
    if (by) C = `(${input}&${1 << (32 - by)})!==0`;
  } else if (kind === 1) {
    result = block.value(by ? `(${input}>>>${by})|0` : '0');
    C = `((${input}>>>${by ? by - 1 : 31})&1)!==0`;
  } else {
    result = block.value(`${input}>>${by || 31}`);
    C = `(${input}&${1 << ((by || 32) - 1)})!==0`;
  }
  block.set(opcode & 7, result);
  block.setFlags({ N: `${result}<0`, Z: `${result}===0`, ...(C ? { C } : {}) });
  block.cycles += 1;
  return true;
}

function addOrSubtract(block, opcode) {
  const first = block.register((opcode >> 3) & 7);
  const second = opcode & 0x400 ? `${(opcode >> 6) & 7}` : block.register((opcode >> 6) & 7);
  block.set(opcode & 7, (opcode & 0x200 ? subtracted : added)(block, first, second));
  block.cycles += 1;
  return true;
}

function immediate8(block, opcode) {
  const d = (opcode >> 8) & 7;
  const value = opcode & 255;
  const kind = (opcode >> 11) & 3;
  if (kind === 0) {
    block.set(d, `${value}`);
    block.setFlags({ N: 'false', Z: value ? 'false' : 'true' });
  } else if (kind === 1) {
    subtracted(block, block.register(d), `${value}`);
  } else {
    block.set(d, (kind === 2 ? added : subtracted)(block, block.register(d), `${value}`));
  }
  block.cycles += 1;
  return true;
}

function literal(block, opcode, code) {
  const address = ((block.pc + 4) & ~3) + ((opcode & 255) << 2);
  const d = (opcode >> 8) & 7;
  if (code.constant(address)) block.set(d, `${code.word(address) | 0}`);
  else block.set(d, block.load(`${address | 0}`, 32, false));
  block.cycles += 2;
  return true;
}

function byRegister(block, opcode) {
  const address = `${block.register((opcode >> 6) & 7)}+${block.register((opcode >> 3) & 7)}`;
  const t = opcode & 7;
  const kind = (opcode >> 9) & 7;
  if (kind < 3) block.store(address, [32, 16, 8][kind], block.register(t));
  else block.set(t, block.load(address, [8, 32, 16, 8, 16][kind - 3], kind === 3 || kind === 7));
  block.cycles += 2;
  return true;
}

function byImmediate(block, opcode) {
  const bits = opcode >> 12 === 8 ? 16 : opcode & 0x1000 ? 8 : 32;
  const n = (opcode >> 3) & 7;
  const offset = ((opcode >> 6) & 31) * (bits / 8);
  const address = `${block.register(n)}+${offset}`;
  const known = block.known(n, offset);
  const t = opcode & 7;
  if (opcode & 0x800) block.set(t, block.load(address, bits, false, known));
  else block.store(address, bits, block.register(t), known);
  block.cycles += 2;
  return true;
}

function byStack(block, opcode) {
  const address = `${block.register(SP)}+${(opcode & 255) << 2}`;
  const t = (opcode >> 8) & 7;
  if (opcode & 0x800) block.set(t, block.load(address, 32, false));
  else block.store(address, 32, block.register(t));
  block.cycles += 2;
  return true;
}

const listed = (bits) => [0, 1, 2, 3, 4, 5, 6, 7].filter((number) => bits & (1 << number));

function push(block, opcode) {
  const numbers = listed(opcode);
  const cycles = 1 + numbers.length;
  if (opcode & 0x100) numbers.push(LR);
  const at = block.words(`${block.register(SP)}-${4 * numbers.length}`, numbers.length);
  numbers.forEach((number, n) => block.emit(`ram32[${at}+${n}]=${block.register(number)};`));
  block.set(SP, `(r${SP}-${4 * numbers.length})|0`);
  block.cycles += cycles;
  return true;
}

function pop(block, opcode) {
  const numbers = listed(opcode);
  const back = opcode & 0x100 ? 1 : 0;
  const at = block.words(block.register(SP), numbers.length + back);
  let target;
  if (back) {
    target = block.value(`ram32[${at}+${numbers.length}]`);
    block.emit(`if((${target}>>>28)===15){${block.notForUs()}}`);
  }
  numbers.forEach((number, n) => block.set(number, `ram32[${at}+${n}]`));
  block.set(SP, `(r${SP}+${4 * (numbers.length + back)})|0`);
  if (back) {
    block.leaveTo(`${target}&~1`, 3 + numbers.length);
    return true;
  }
  block.cycles += 1 + numbers.length;
  return true;
}

function multiple(block, opcode) {
  const n = (opcode >> 8) & 7;
  const numbers = listed(opcode);
  const at = block.words(block.register(n), numbers.length);
  if (opcode & 0x800) numbers.forEach((number, i) => block.set(number, `ram32[${at}+${i}]`));
  else numbers.forEach((number, i) => block.emit(`ram32[${at}+${i}]=${block.register(number)};`));
  if (!numbers.includes(n)) block.set(n, `(r${n}+${4 * numbers.length})|0`);
  block.cycles += 1 + numbers.length;
  return true;
}

function miscellaneous(block, opcode) {
  const d = opcode & 7;
  const M = () => block.register((opcode >> 3) & 7);
  if (opcode >> 7 === 0x160) block.set(SP, `((${block.register(SP)}+${(opcode & 127) << 2})|0)&~3`);
  else if (opcode >> 7 === 0x161) block.set(SP, `((${block.register(SP)}-${(opcode & 127) << 2})|0)&~3`);
  else if (opcode >> 9 === 0x5a) return push(block, opcode);
  else if (opcode >> 9 === 0x5e) return pop(block, opcode);
  else if (opcode >> 6 === 0x2c8) block.set(d, `${M()}<<16>>16`);
  else if (opcode >> 6 === 0x2c9) block.set(d, `${M()}<<24>>24`);
  else if (opcode >> 6 === 0x2ca) block.set(d, `${M()}&65535`);
  else if (opcode >> 6 === 0x2cb) block.set(d, `${M()}&255`);
  else if (opcode >> 6 === 0x2e8) {
    const input = block.value(M());
    block.set(d, `(${input}<<24)|((${input}&65280)<<8)|((${input}>>>8)&65280)|(${input}>>>24)`);
  } else if (opcode !== 0xbf00) return false;
  block.cycles += 1;
  return true;
}

// Branches to a place that the code itself names. True if it was one.
export function branch(block, opcode, second) {
  if (opcode >> 12 === 13) {
    const condition = (opcode >> 8) & 15;
    if (condition >= 14) return false;
    const target = block.pc + 4 + signed(opcode, 8) * 2;
    if (block.next === target) {
      block.emit(`if(${block.condition(condition ^ 1)}){${block.goTo(block.pc + 2, 1)}}`);
      block.cycles += 2;
    } else {
      block.emit(`if(${block.condition(condition)}){${block.goTo(target, 2)}}`);
      block.cycles += 1;
    }
    return true;
  }
  if (opcode >> 11 === 28) {
    block.cycles += 2;
    return true;
  }
  if (opcode >> 11 === 30 && second >> 14 === 3 && second & 0x1000) {
    block.set(LR, `${(block.pc + 4) | 1}`);
    block.cycles += 3;
    return true;
  }
  return false;
}

export function translate(block, opcode, code) {
  switch (opcode >> 12) {
    case 0:
    case 1:
      return opcode >> 11 === 3 ? addOrSubtract(block, opcode) : shiftImmediate(block, opcode);
    case 2:
    case 3:
      return immediate8(block, opcode);
    case 4:
      if (opcode & 0x800) return literal(block, opcode, code);
      return opcode & 0x400 ? highRegisters(block, opcode) : dataProcessing(block, opcode);
    case 5:
      return byRegister(block, opcode);
    case 6:
    case 7:
    case 8:
      return byImmediate(block, opcode);
    case 9:
      return byStack(block, opcode);
    case 10: {
      const base = opcode & 0x800 ? block.register(SP) : `${((block.pc + 4) & ~3) | 0}`;
      block.set((opcode >> 8) & 7, `(${base}+${(opcode & 255) << 2})|0`);
      block.cycles += 1;
      return true;
    }
    case 11:
      return miscellaneous(block, opcode);
    case 12:
      return multiple(block, opcode);
    default:
      return false;
  }
}
