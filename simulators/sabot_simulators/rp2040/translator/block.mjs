// One stretch of Thumb code as the text of a JavaScript function. What an instruction does stands in thumb.mjs;
// here is what all of them share: registers and flags in local variables, memory, and the ways out.
//
// The function is called with the core and the cycles until the next alarm. It returns the cycles it took, with all
// registers and flags written back; or -1 less those cycles if the instruction it has come to is not for it.
const RAM = 0x20000000;
const RAM_SIZE = 264 * 1024;
const FLASH = 0x10000000;
const FLASH_SIZE = 2 << 20;
const FLAGS = ['N', 'Z', 'C', 'V'];
const SIO = 0xd0000000;
const isNumber = (text) => /^-?\d+$/.test(text);

// Registers of the processor's own I/O that have nothing to do with time or pins: its number, the divider, the locks.
// Reading or writing one costs no cycle more than the instruction.
const isAside = (offset) => offset === 0 || (offset >= 0x60 && offset <= 0x78) || (offset >= 0x100 && offset < 0x180);

export class Block {
  constructor(start, written, loops) {
    this.start = start;
    this.loops = loops;
    this.pc = start; // of the instruction that is being translated
    this.cycles = 0;
    this.lines = [];
    this.temporaries = 0;
    this.used = new Set(written);
    this.written = new Set();
    this.dirty = new Set(loops ? written : []);
    this.flags = Object.fromEntries(FLAGS.map((name) => [name, loops ? `f${name}` : `core.${name}`]));
    this.fresh = new Set(loops ? FLAGS : []); // flags that the core does not have
    this.compared = null; // the two that were subtracted last, if the flags still say so
    this.comesBack = false;
    this.constants = new Map(); // registers whose value is known
    this.next = 0; // where the program went on from here when it was watched
  }

  emit(line) {
    this.lines.push(line);
  }

  // -- values ----------------------------------------------------------------------------------

  register(number) {
    this.used.add(number);
    return `r${number}`;
  }

  set(number, value) {
    this.used.add(number);
    this.written.add(number);
    this.dirty.add(number);
    this.emit(`r${number}=${value};`);
    if (isNumber(value)) this.constants.set(number, Number(value) | 0);
    else this.constants.delete(number);
  }

  value(text) {
    const name = `t${this.temporaries++}`;
    this.emit(`const ${name}=${text};`);
    return name;
  }

  // -- flags -----------------------------------------------------------------------------------

  setFlags(flags, compared = null) {
    for (const [name, text] of Object.entries(flags)) {
      this.flags[name] = text;
      this.fresh.add(name);
    }
    this.compared = compared;
  }

  flagsOf(result) {
    this.setFlags({ N: `${result}<0`, Z: `${result}===0` });
  }

  condition(number) {
    const { N, Z, C, V } = this.flags;
    const pair = this.compared;
    const not = number & 1;
    let text;
    switch (number >> 1) {
      case 0:
        text = Z;
        break;
      case 1:
        text = C;
        break;
      case 2:
        text = N;
        break;
      case 3:
        text = V;
        break;
      case 4:
        text = pair ? `(${pair[0]}>>>0)>(${pair[1]}>>>0)` : `(${C})&&!(${Z})`;
        break;
      case 5:
        text = pair ? `${pair[0]}>=${pair[1]}` : `(${N})===(${V})`;
        break;
      default:
        text = pair ? `${pair[0]}>${pair[1]}` : `(${N})===(${V})&&!(${Z})`;
    }
    return not ? `!(${text})` : text;
  }

  // -- memory ----------------------------------------------------------------------------------

  // What an address is, if that is known: a register with a known value and an offset.
  known(base, offset) {
    return this.constants.has(base) ? (this.constants.get(base) + offset) >>> 0 : null;
  }

  load(address, bits, signed, known = null) {
    if (known !== null && bits === 32 && known >= SIO && isAside(known - SIO)) {
      this.cycles -= 1;
      return this.value(`core.rp2040.sio.readUint32(${known - SIO})|0`);
    }
    const [array, flash, shift] = { 8: ['ram8', 'flash8', 0], 16: ['ram16', 'flash16', 1], 32: ['ram32', 'flash32', 2] }[bits];
    const at = this.value(`(${address})|0`);
    const aligned = bits === 8 ? '' : `&&!(${at}&${bits / 8 - 1})`;
    const name = `t${this.temporaries++}`;
    this.emit(`let ${name};`);
    this.emit(`if(((${at}-${RAM})>>>0)<${RAM_SIZE}${aligned})${name}=${array}[(${at}-${RAM})>>>${shift}];`);
    this.emit(`else if(((${at}-${FLASH})>>>0)<${FLASH_SIZE}${aligned})${name}=${flash}[(${at}-${FLASH})>>>${shift}];`);
    this.emit(`else{${this.notForUs()}}`);
    return signed ? `${name}<<${32 - bits}>>${32 - bits}` : name;
  }

  store(address, bits, value, known = null) {
    if (known !== null && bits === 32 && known >= SIO && isAside(known - SIO)) {
      this.cycles -= 1;
      this.emit(`core.rp2040.sio.writeUint32(${known - SIO},${value}>>>0);`);
      return;
    }
    const [array, shift] = { 8: ['ram8', 0], 16: ['ram16', 1], 32: ['ram32', 2] }[bits];
    const at = this.value(`(${address})|0`);
    const aligned = bits === 8 ? '' : `&&!(${at}&${bits / 8 - 1})`;
    this.emit(`if(((${at}-${RAM})>>>0)<${RAM_SIZE}${aligned})${array}[(${at}-${RAM})>>>${shift}]=${value};`);
    this.emit(`else{${this.notForUs()}}`);
  }

  // The index of the first of some words in RAM; with other addresses this is not for us.
  words(address, count) {
    const at = this.value(`(${address})|0`);
    this.emit(`if(((${at}-${RAM})>>>0)>${RAM_SIZE - 4 * count}||(${at}&3)){${this.notForUs()}}`);
    return this.value(`(${at}-${RAM})>>>2`);
  }

  // -- ways out --------------------------------------------------------------------------------

  writeBack() {
    let text = '';
    for (const number of this.dirty) text += `R[${number}]=r${number};`;
    for (const name of this.fresh) text += `core.${name}=${this.flags[name]};`;
    return text;
  }

  leave(target, cycles) {
    const all = this.cycles + cycles;
    return `${this.writeBack()}R[15]=${target};return ${this.loops ? `spent+${all}` : all};`;
  }

  notForUs() {
    const taken = this.loops ? `-1-spent-${this.cycles}` : -1 - this.cycles;
    return `${this.writeBack()}R[15]=${this.pc};return ${taken};`; // registers as they were before it
  }

  // To an address that is only known when it runs: on, if it is the one it was when this was watched.
  leaveTo(target, cycles) {
    const to = this.value(target);
    this.emit(`if(${to}!==${this.next | 0}){${this.leave(to, cycles)}}`);
    this.cycles += cycles;
  }

  goTo(target, cycles) {
    if (target !== this.start) return this.leave(target, cycles);
    this.comesBack = true;
    if (!this.loops) return this.leave(target, cycles);
    const flags = FLAGS.map((name) => `const n${name}=${this.flags[name]};`).join('');
    const kept = FLAGS.map((name) => `f${name}=n${name};`).join('');
    return `{${flags}${kept}}spent+=${this.cycles + cycles};continue;`;
  }

  text(most) {
    const loaded = [...this.used].map((number) => `let r${number}=R[${number}];`).join('');
    if (!this.loops) return `if(left<${most})return -1;${loaded}\n${this.lines.join('\n')}`;
    const flags = FLAGS.map((name) => `let f${name}=core.${name};`).join('');
    const back = [...this.used].map((number) => `R[${number}]=r${number};`).join('');
    const flagsBack = FLAGS.map((name) => `core.${name}=f${name};`).join('');
    const over = `${back}${flagsBack}R[15]=${this.start};return spent||-1;`;
    return `let spent=0;${loaded}${flags}\nfor(;;){if(spent+${most}>left){${over}}\n${this.lines.join('\n')}\n}`;
  }
}
