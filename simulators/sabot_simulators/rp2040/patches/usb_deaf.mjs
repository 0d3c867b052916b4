// A USB host may stop asking for bytes: what the device has ready then stays in its buffer. Unpatched, the emulated host
// takes every packet at once.
export function patchUsbDeaf(mcu, cdc, pico) {
  const usb = mcu.usbCtrl;
  const taken = usb.indicateBufferReady.bind(usb);
  pico.untaken = false;
  usb.indicateBufferReady = (endpoint, out) => {
    if (pico.deaf && !out && endpoint && endpoint === cdc.inEndpoint) pico.untaken = true;
    else taken(endpoint, out);
  };
  pico.listen = () => {
    if (pico.untaken) taken(cdc.inEndpoint, false);
    pico.untaken = false;
  };
}
