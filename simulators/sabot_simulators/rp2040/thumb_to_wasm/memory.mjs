// Where everything that the processor works with lies in one linear memory: compiled code sees nothing else.
const PAGE = 1 << 16;

export const FLASH = 0x10000000;
export const RAM = 0x20000000;
export const ROM_SIZE = 0x4000;
export const FLASH_SIZE = 2 << 20;
export const RAM_SIZE = 264 * 1024;

// Every address that code may have has a place: flash, then RAM, then ROM.
export const FLASH_PLACES = FLASH_SIZE / 2;
export const ROM_PLACE = FLASH_PLACES + (1 << 18);
export const PLACES = ROM_PLACE + ROM_SIZE / 2;

// In the linear memory.
export const REGISTERS_AT = 0;
export const PC_AT = REGISTERS_AT + 60;
export const RESULT_AT = 64; // its sign and whether it is zero are the flags N and Z
export const CARRY_AT = 68; // 0 or 1
export const OVERFLOW_AT = 72; // set if negative
export const SPENT_AT = 76; // cycles
export const LIMIT_AT = 80;
export const REFUSED_AT = 84; // set if a word was not read
export const MORE_AT = 88; // cycles that an access took beyond those of RAM
export const DIVIDER_AT = 96; // its registers
export const RAM_AT = PAGE;
export const ROM_AT = 8 * PAGE;
export const FLASH_AT = 16 * PAGE;
export const ENTRIES_AT = FLASH_AT + FLASH_SIZE; // a number for each place: what is known of code that begins there
const SIZE = ENTRIES_AT + 4 * PLACES;

// The place of an address; -1 if there is no code there.
export function place(pc) {
  switch (pc >>> 28) {
    case 0:
      return pc < ROM_SIZE ? ROM_PLACE + (pc >>> 1) : -1;
    case 1:
      return (pc & 0xfffffff) < FLASH_SIZE ? (pc & 0xfffffff) >>> 1 : -1;
    case 2:
      return FLASH_PLACES + ((pc & 0x7ffff) >>> 1);
    default:
      return -1;
  }
}

export class Memory {
  constructor() {
    this.linear = new WebAssembly.Memory({ initial: Math.ceil(SIZE / PAGE) });
    const { buffer } = this.linear;
    this.registers = new Uint32Array(buffer, REGISTERS_AT, 16);
    this.state = new Int32Array(buffer, 0, PAGE / 4);
    this.ram = new Uint8Array(buffer, RAM_AT, RAM_SIZE);
    this.rom = new Uint32Array(buffer, ROM_AT, ROM_SIZE / 4);
    this.flash = new Uint8Array(buffer, FLASH_AT, FLASH_SIZE);
    this.entries = new Int32Array(buffer, ENTRIES_AT, PLACES);
  }

  half(address) {
    if (address >>> 28 === 1) return this.flash[address & 0xffffff] | (this.flash[(address & 0xffffff) + 1] << 8);
    if (address >>> 28 === 2) return this.ram[address & 0x7ffff] | (this.ram[(address & 0x7ffff) + 1] << 8);
    return (this.rom[address >>> 2] >>> (address & 2 ? 16 : 0)) & 0xffff;
  }
}
