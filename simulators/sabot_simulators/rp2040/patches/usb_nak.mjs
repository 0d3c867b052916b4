// A USB host that has nothing to send leaves the endpoint pending (NAK), as real hosts do. Unpatched, the emulated
// host completes it with an empty packet every 10 us, and the firmware's USB task is never done.
export function patchUsbNak(mcu, cdc, pico) {
  const complete = mcu.usbCtrl.onEndpointRead;
  pico.pendingOut = null;
  const fill = () => {
    const queue = pico.toUsb;
    while (queue.length && cdc.txFIFO.itemCount < 500) cdc.sendSerialByte(queue.shift());
  };
  // What the host has left: it must not depend on when a run began, for runs end when the machine moves.
  pico.untakenUsb = () => pico.toUsb.length + cdc.txFIFO.itemCount;
  pico.pumpUsb = () => {
    fill();
    if (pico.pendingOut !== null && !cdc.txFIFO.empty) {
      const size = pico.pendingOut;
      pico.pendingOut = null;
      pico.accepted.push(pico.nanos() / 1e3);
      complete(cdc.outEndpoint, size);
    }
  };
  mcu.usbCtrl.onEndpointRead = (endpoint, size) => {
    fill();
    if (endpoint && endpoint === cdc.outEndpoint && cdc.txFIFO.empty) {
      pico.pendingOut = size;
      pico.pumpUsb();
    } else {
      if (endpoint && endpoint === cdc.outEndpoint) pico.accepted.push(pico.nanos() / 1e3);
      complete(endpoint, size);
    }
  };
}
