// The grid's ticks, made by a timer's alarm: while it runs, bytes pass the cables in this interrupt and nowhere else.
//
// Ticks are numbered from 1 when the grid starts. For each of them Python says beforehand how many bytes may come in (allow)
// and what is to be sent (put). At the tick both happen, whatever Python does at that moment: it may deal with an edge, or
// collect garbage. What Python puts for a tick waits for that tick, however early it was ready. The interrupt has the highest
// priority. It shares it with USB's own, which must not be interrupted by it. It comes a little early and waits for its
// microsecond: how long the processor takes to get there depends on what it did, and whether it slept.
//
// USB takes 64 bytes each way at a time, and its stack has to run in between. So its tick is a row of instants, one
// millisecond apart; outside of it the stack does not run, and the host's packets and questions wait. The UART's tick is
// half a period later, so that what both ask for never comes at once.
#include <string.h>

#include "hardware/irq.h"
#include "hardware/structs/sio.h"
#include "hardware/timer.h"
#include "py/mphal.h"
#include "py/ringbuf.h"
#include "py/runtime.h"
#include "py/smallint.h"
#include "py/stream.h"

#ifndef NO_QSTR // its folder is not known where names are looked for
#include "tusb.h"
#endif

#define ALARM (1)
#define PERIOD_US (50000)
#define UART_AT_US (25000)
#define USB_STEP_US (1000)
#define USB_STEPS (8)
#define EARLY_US (40)
#define SOON_US (5000) // the first tick is not sooner: Python has to say first what may come in
#define SLOTS (4) // ticks of a cable under way, from bytes that came to the answer: a power of two
#define IN_BYTES (320)
#define OUT_BYTES (2048) // a power of two: the answers of two ticks
#define CABLES (2)
#define USB_CABLE (0)
#define UART_CABLE (1)

extern ringbuf_t stdin_ringbuf;
extern void mp_usbd_schedule_task(void);
extern void tud_cdc_rx_cb(uint8_t itf);
extern uintptr_t mp_usbd_cdc_poll_interfaces(uintptr_t poll_flags);
extern size_t sabot_uart_take(uint8_t *to, size_t most);
extern size_t sabot_uart_put(const uint8_t *from, size_t length);

typedef struct _slot_t { // one tick
    volatile size_t allowed; // bytes that may still come in
    volatile size_t taken;
    volatile size_t unsent; // at its end: the host did not read
    volatile bool put;
    volatile uint32_t until; // what is sent at this tick ends here
    uint8_t in[IN_BYTES];
} slot_t;

typedef struct _cable_t {
    volatile uint32_t begun; // ticks
    volatile uint32_t ticks; // whose exchange is over
    volatile uint32_t put; // bytes left to be sent, since the grid started
    volatile uint32_t released; // those whose tick has come
    volatile uint32_t sent;
    slot_t slots[SLOTS];
    uint8_t out[OUT_BYTES];
} cable_t;

volatile bool sabot_grid_runs = false; // USB's stack is left alone by everybody else
static cable_t cables[CABLES];
static uint64_t first_us; // when the first period began
static uint64_t period_us; // when the period began
static unsigned step; // of USB, or USB_STEPS: the UART's tick
static volatile uint32_t worst_us; // the latest that an exchange began
volatile uint32_t sabot_grid_late = 0; // answers that were put after their tick, since power-up
volatile int32_t sabot_grid_spare_us = PERIOD_US * SLOTS; // the least time from a put to its tick, since power-up

static slot_t *slot_of(cable_t *cable, uint32_t tick) {
    return &cable->slots[tick & (SLOTS - 1)];
}

static void begin_tick(cable_t *cable) {
    slot_t *slot = slot_of(cable, ++cable->begun);
    if (slot->put) {
        slot->put = false;
        cable->released = slot->until;
    }
}

static void end_tick(cable_t *cable) {
    slot_t *slot = slot_of(cable, cable->begun);
    slot->allowed = 0;
    slot->unsent = cable->released - cable->sent;
    cable->ticks = cable->begun;
}

// The next piece of what is to be sent, as it lies in memory; how long it is.
static size_t piece(cable_t *cable, const uint8_t **from) {
    size_t at = cable->sent & (OUT_BYTES - 1);
    *from = cable->out + at;
    return MIN(cable->released - cable->sent, OUT_BYTES - at);
}

static void send_usb(cable_t *cable) {
    const uint8_t *from;
    size_t length;
    while ((length = piece(cable, &from)) > 0) {
        if (tud_cdc_connected()) {
            length = MIN(length, tud_cdc_write_available());
        }
        size_t written = tud_cdc_write(from, length);
        cable->sent += written;
        if (written == 0) {
            break;
        }
    }
    tud_cdc_write_flush();
}

// The first packet leaves before anything else is done: how long the stack takes depends on what has come.
static void exchange_usb(cable_t *cable) {
    send_usb(cable);
    tud_task_ext(0, false);
    send_usb(cable);
    tud_cdc_rx_cb(USB_CABLE);
    slot_t *slot = slot_of(cable, cable->begun);
    while (slot->allowed > 0 && ringbuf_avail(&stdin_ringbuf) > 0) {
        slot->in[slot->taken++] = ringbuf_get(&stdin_ringbuf);
        slot->allowed--;
    }
}

static void exchange_uart(cable_t *cable) {
    const uint8_t *from;
    size_t length;
    while ((length = piece(cable, &from)) > 0) {
        size_t written = sabot_uart_put(from, length);
        cable->sent += written;
        if (written < length) {
            break;
        }
    }
    slot_t *slot = slot_of(cable, cable->begun);
    size_t taken = sabot_uart_take(slot->in + slot->taken, slot->allowed);
    slot->taken += taken;
    slot->allowed -= taken;
}

static uint64_t due_us(void) {
    return period_us + (step < USB_STEPS ? step * USB_STEP_US : UART_AT_US);
}

// A division in an interrupt takes longer if it interrupts another one, whose state it has to keep. Buffers divide at each
// byte, so answers on the UART left 5 us late then: it told that the processor was at work. The state is kept once here,
// before the tick's microsecond.
static void on_alarm(uint alarm) {
    while (!(sio_hw->div_csr & SIO_DIV_CSR_READY_BITS)) {
    }
    bool dividing = sio_hw->div_csr & SIO_DIV_CSR_DIRTY_BITS;
    uint32_t dividend = sio_hw->div_udividend, divisor = sio_hw->div_udivisor;
    uint32_t remainder = sio_hw->div_remainder;
    uint32_t quotient = sio_hw->div_quotient; // the last: reading it says that nobody waits for a result
    do {
        uint64_t due = due_us();
        int32_t late;
        while ((late = (int32_t)(timer_hw->timerawl - (uint32_t)due)) < 0) {
        }
        if ((uint32_t)late > worst_us) {
            worst_us = late;
        }
        if (step < USB_STEPS) {
            cable_t *usb = &cables[USB_CABLE];
            if (step == 0) {
                begin_tick(usb);
            }
            exchange_usb(usb);
            if (++step == USB_STEPS) {
                end_tick(usb);
            }
        } else {
            cable_t *uart = &cables[UART_CABLE];
            begin_tick(uart);
            exchange_uart(uart);
            end_tick(uart);
            step = 0;
            period_us += PERIOD_US;
        }
    } while (hardware_alarm_set_target(ALARM, from_us_since_boot(due_us() - EARLY_US)));
    if (dividing) {
        sio_hw->div_udividend = dividend;
        sio_hw->div_udivisor = divisor;
        sio_hw->div_remainder = remainder;
        sio_hw->div_quotient = quotient;
    }
}

static mp_obj_t grid_start(void) {
    if (!sabot_grid_runs) {
        static bool claimed = false;
        if (!claimed) {
            hardware_alarm_claim(ALARM);
            hardware_alarm_set_callback(ALARM, on_alarm);
            irq_set_priority(hardware_alarm_get_irq_num(ALARM), PICO_HIGHEST_IRQ_PRIORITY);
            irq_set_priority(USBCTRL_IRQ, PICO_HIGHEST_IRQ_PRIORITY);
            claimed = true;
        }
        memset(cables, 0, sizeof(cables));
        step = 0;
        first_us = period_us = ((time_us_64() + SOON_US) / PERIOD_US + 1) * PERIOD_US;
        sabot_grid_runs = true;
        if (hardware_alarm_set_target(ALARM, from_us_since_boot(period_us - EARLY_US))) {
            hardware_alarm_force_irq(ALARM);
        }
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_start_obj, grid_start);

static mp_obj_t grid_stop(void) {
    if (sabot_grid_runs) {
        hardware_alarm_cancel(ALARM);
        sabot_grid_runs = false;
        mp_usbd_schedule_task();
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_stop_obj, grid_stop);

static cable_t *cable_of(mp_obj_t number) {
    mp_int_t n = mp_obj_get_int(number);
    if (n < 0 || n >= CABLES) {
        mp_raise_ValueError(MP_ERROR_TEXT("cable"));
    }
    return &cables[n];
}

static uint32_t tick_of(mp_obj_t number) {
    return (uint32_t)mp_obj_get_int(number);
}

// When a tick begins
static uint64_t tick_us(cable_t *cable, uint32_t tick) {
    return first_us + (uint64_t)(tick - 1) * PERIOD_US + (cable == &cables[UART_CABLE] ? UART_AT_US : 0);
}

// ticks(cable): how many exchanges are over
static mp_obj_t grid_ticks(mp_obj_t number) {
    return MP_OBJ_NEW_SMALL_INT(cable_of(number)->ticks);
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_ticks_obj, grid_ticks);

// at_us(cable, tick): when it began, as ticks_us counts
static mp_obj_t grid_at_us(mp_obj_t number, mp_obj_t tick) {
    return MP_OBJ_NEW_SMALL_INT(tick_us(cable_of(number), tick_of(tick)) & (MICROPY_PY_TIME_TICKS_PERIOD - 1));
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_at_us_obj, grid_at_us);

// at_ms(cable, tick): the same as ticks_ms counts; a tick comes at a whole millisecond
static mp_obj_t grid_at_ms(mp_obj_t number, mp_obj_t tick) {
    return MP_OBJ_NEW_SMALL_INT((tick_us(cable_of(number), tick_of(tick)) / 1000) & (MICROPY_PY_TIME_TICKS_PERIOD - 1));
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_at_ms_obj, grid_at_ms);

// due_us(): how long until the next exchange is over
static mp_obj_t grid_due_us(void) {
    uint64_t due = period_us + (step < USB_STEPS ? (USB_STEPS - 1) * USB_STEP_US : UART_AT_US);
    uint64_t now = time_us_64();
    return MP_OBJ_NEW_SMALL_INT(due > now ? due - now : 0);
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_due_us_obj, grid_due_us);

// allow(cable, tick, bytes): so many may come in at a tick that has not begun
static mp_obj_t grid_allow(mp_obj_t number, mp_obj_t tick, mp_obj_t bytes) {
    cable_t *cable = cable_of(number);
    uint32_t at = tick_of(tick);
    mp_int_t most = mp_obj_get_int(bytes);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    slot_t *slot = slot_of(cable, at);
    if ((int32_t)(at - cable->begun) > 0) {
        slot->allowed = most < 0 ? 0 : MIN((size_t)most, IN_BYTES - slot->taken);
    }
    MICROPY_END_ATOMIC_SECTION(state);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(grid_allow_obj, grid_allow);

// take(cable, tick, buffer): the bytes that have come in at a tick; how many there were
static mp_obj_t grid_take(mp_obj_t number, mp_obj_t tick, mp_obj_t buffer) {
    slot_t *slot = slot_of(cable_of(number), tick_of(tick));
    mp_buffer_info_t into;
    mp_get_buffer_raise(buffer, &into, MP_BUFFER_WRITE);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    size_t taken = MIN(slot->taken, into.len);
    memcpy(into.buf, slot->in, taken);
    slot->taken = 0;
    MICROPY_END_ATOMIC_SECTION(state);
    return MP_OBJ_NEW_SMALL_INT(taken);
}
static MP_DEFINE_CONST_FUN_OBJ_3(grid_take_obj, grid_take);

// put(cable, tick, data): send this at a tick, or at the next one if that has begun; False if there is no room for it
static mp_obj_t grid_put(mp_obj_t number, mp_obj_t tick, mp_obj_t data) {
    cable_t *cable = cable_of(number);
    uint32_t at = tick_of(tick);
    mp_buffer_info_t from;
    mp_get_buffer_raise(data, &from, MP_BUFFER_READ);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    int32_t spare = (int32_t)(tick_us(cable, at) - time_us_64());
    if (at > SLOTS && spare < sabot_grid_spare_us) { // what waited when the grid started has no tick of its own
        sabot_grid_spare_us = spare;
    }
    if ((int32_t)(at - cable->begun) <= 0) {
        sabot_grid_late++;
        at = cable->begun + 1;
    }
    bool fits = cable->put - cable->sent + from.len <= OUT_BYTES;
    if (fits) {
        const uint8_t *bytes = from.buf;
        for (size_t n = 0; n < from.len; ++n) {
            cable->out[cable->put++ & (OUT_BYTES - 1)] = bytes[n];
        }
    }
    slot_t *slot = slot_of(cable, at);
    slot->until = cable->put;
    slot->put = true;
    MICROPY_END_ATOMIC_SECTION(state);
    return mp_obj_new_bool(fits);
}
static MP_DEFINE_CONST_FUN_OBJ_3(grid_put_obj, grid_put);

// unsent(cable, tick): how many of the bytes that were to be sent by a tick had not been when it was over
static mp_obj_t grid_unsent(mp_obj_t number, mp_obj_t tick) {
    return MP_OBJ_NEW_SMALL_INT(slot_of(cable_of(number), tick_of(tick))->unsent);
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_unsent_obj, grid_unsent);

// rest(cable): what has not been sent, also of ticks to come; for when the grid has stopped
static mp_obj_t grid_rest(mp_obj_t number) {
    cable_t *cable = cable_of(number);
    vstr_t rest;
    vstr_init_len(&rest, cable->put - cable->sent);
    for (size_t n = 0; n < rest.len; ++n) {
        rest.buf[n] = cable->out[cable->sent++ & (OUT_BYTES - 1)];
    }
    return mp_obj_new_bytes_from_vstr(&rest);
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_rest_obj, grid_rest);

// read_usb(buffer): take what USB has brought, without waiting; how many bytes. Only while the grid does not run.
// MicroPython's own way takes a poll and a call for each byte.
static mp_obj_t grid_read_usb(mp_obj_t buffer) {
    mp_buffer_info_t to;
    mp_get_buffer_raise(buffer, &to, MP_BUFFER_WRITE);
    mp_usbd_cdc_poll_interfaces(MP_STREAM_POLL_RD);
    size_t taken = 0;
    while (taken < to.len && ringbuf_avail(&stdin_ringbuf) > 0) {
        ((uint8_t *)to.buf)[taken++] = ringbuf_get(&stdin_ringbuf);
    }
    return MP_OBJ_NEW_SMALL_INT(taken);
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_read_usb_obj, grid_read_usb);

// worst_us(): the latest that an interrupt of the grid came since power-up
static mp_obj_t grid_worst_us(void) {
    return MP_OBJ_NEW_SMALL_INT(worst_us);
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_worst_us_obj, grid_worst_us);

// late(): how many answers were put after their tick since power-up; there should be none
static mp_obj_t grid_late(void) {
    return MP_OBJ_NEW_SMALL_INT(sabot_grid_late);
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_late_obj, grid_late);

static const mp_rom_map_elem_t grid_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_sabot_grid) },
    { MP_ROM_QSTR(MP_QSTR_start), MP_ROM_PTR(&grid_start_obj) },
    { MP_ROM_QSTR(MP_QSTR_stop), MP_ROM_PTR(&grid_stop_obj) },
    { MP_ROM_QSTR(MP_QSTR_ticks), MP_ROM_PTR(&grid_ticks_obj) },
    { MP_ROM_QSTR(MP_QSTR_at_us), MP_ROM_PTR(&grid_at_us_obj) },
    { MP_ROM_QSTR(MP_QSTR_at_ms), MP_ROM_PTR(&grid_at_ms_obj) },
    { MP_ROM_QSTR(MP_QSTR_due_us), MP_ROM_PTR(&grid_due_us_obj) },
    { MP_ROM_QSTR(MP_QSTR_allow), MP_ROM_PTR(&grid_allow_obj) },
    { MP_ROM_QSTR(MP_QSTR_take), MP_ROM_PTR(&grid_take_obj) },
    { MP_ROM_QSTR(MP_QSTR_put), MP_ROM_PTR(&grid_put_obj) },
    { MP_ROM_QSTR(MP_QSTR_unsent), MP_ROM_PTR(&grid_unsent_obj) },
    { MP_ROM_QSTR(MP_QSTR_rest), MP_ROM_PTR(&grid_rest_obj) },
    { MP_ROM_QSTR(MP_QSTR_read_usb), MP_ROM_PTR(&grid_read_usb_obj) },
    { MP_ROM_QSTR(MP_QSTR_late), MP_ROM_PTR(&grid_late_obj) },
    { MP_ROM_QSTR(MP_QSTR_worst_us), MP_ROM_PTR(&grid_worst_us_obj) },
};
static MP_DEFINE_CONST_DICT(grid_globals, grid_globals_table);

const mp_obj_module_t sabot_grid_module = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&grid_globals,
};
MP_REGISTER_MODULE(MP_QSTR_sabot_grid, sabot_grid_module);
