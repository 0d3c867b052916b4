// A stepped axis as its driver sees it: pulses counted up or down. It says when it begins to move or turns round,
// and stops the run at the places asked for.
const REST_NANOS = 20e6; // longer than the slowest step

export class Axis {
  constructor(number, forward, pico) {
    this.number = number;
    this.forward = forward; // whether its direction is forward at this moment
    this.pico = pico;
    this.position = 0;
    this.stopAt = [];
    this.last = -REST_NANOS;
    this.direction = 0;
  }

  step() {
    const direction = this.forward() ? 1 : -1;
    this.position += direction;
    const now = this.pico.nanos();
    if (now - this.last >= REST_NANOS || direction !== this.direction) {
      this.direction = direction;
      this.pico.tell('axis', this.number, direction);
    }
    this.last = now;
    if (this.stopAt.includes(this.position)) this.pico.tell('reached', this.number, this.position);
  }
}
