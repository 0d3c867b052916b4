// The grid's ticks, made by a timer's alarm: while it runs, bytes pass the cables in this interrupt and nowhere else.
//
// Python leaves what is to be sent (put) and says how much may come in (allow); at the tick both happen, whatever Python
// does at that moment: it may deal with an edge, or collect garbage. The interrupt has the highest priority. It shares it
// with USB's own, which must not be interrupted by it. It comes a little early and waits for its microsecond: how long the
// processor takes to get there depends on what it did, and whether it slept.
//
// USB takes 64 bytes each way at a time, and its stack has to run in between. So its tick is a row of instants, one
// millisecond apart; outside of it the stack does not run, and the host's packets and questions wait. The UART's tick is
// half a period later, so that what both ask for never comes at once.
#include <string.h>

#include "hardware/irq.h"
#include "hardware/timer.h"
#include "py/mphal.h"
#include "py/ringbuf.h"
#include "py/runtime.h"
#include "py/smallint.h"

#ifndef NO_QSTR // its folder is not known where names are looked for
#include "tusb.h"
#endif

#define ALARM (1)
#define PERIOD_US (50000)
#define UART_AT_US (25000)
#define USB_STEP_US (1000)
#define USB_STEPS (8)
#define EARLY_US (40)
#define IN_BYTES (320)
#define OUT_BYTES (1024)
#define CABLES (2)
#define USB_CABLE (0)
#define UART_CABLE (1)

extern ringbuf_t stdin_ringbuf;
extern void mp_usbd_schedule_task(void);
extern void tud_cdc_rx_cb(uint8_t itf);
extern size_t sabot_uart_take(uint8_t *to, size_t most);
extern size_t sabot_uart_put(const uint8_t *from, size_t length);

typedef struct _cable_t {
    volatile uint32_t ticks; // whose exchange is over
    volatile uint64_t at_us; // when the last of them began
    volatile size_t allowed; // bytes that may still come in
    volatile size_t taken;
    volatile size_t length; // of what is to be sent, and how much of it has gone
    volatile size_t sent;
    uint8_t in[IN_BYTES];
    uint8_t out[OUT_BYTES];
} cable_t;

volatile bool sabot_grid_runs = false; // USB's stack is left alone by everybody else
static cable_t cables[CABLES];
static uint64_t period_us; // when the period began
static unsigned step; // of USB, or USB_STEPS: the UART's tick
static volatile uint32_t worst_us; // the latest that an exchange began

static void send_usb(cable_t *cable) {
    size_t length = cable->length - cable->sent;
    if (length > 0) {
        if (tud_cdc_connected()) {
            length = MIN(length, tud_cdc_write_available());
        }
        cable->sent += tud_cdc_write(cable->out + cable->sent, length);
    }
    tud_cdc_write_flush();
}

// The first packet leaves before anything else is done: how long the stack takes depends on what has come.
static void exchange_usb(cable_t *cable) {
    send_usb(cable);
    tud_task_ext(0, false);
    send_usb(cable);
    tud_cdc_rx_cb(USB_CABLE);
    while (cable->allowed > 0 && ringbuf_avail(&stdin_ringbuf) > 0) {
        cable->in[cable->taken++] = ringbuf_get(&stdin_ringbuf);
        cable->allowed--;
    }
}

static void exchange_uart(cable_t *cable) {
    cable->sent += sabot_uart_put(cable->out + cable->sent, cable->length - cable->sent);
    size_t taken = sabot_uart_take(cable->in + cable->taken, cable->allowed);
    cable->taken += taken;
    cable->allowed -= taken;
}

static uint64_t due_us(void) {
    return period_us + (step < USB_STEPS ? step * USB_STEP_US : UART_AT_US);
}

static void on_alarm(uint alarm) {
    do {
        uint64_t due = due_us();
        int32_t late;
        while ((late = (int32_t)(timer_hw->timerawl - (uint32_t)due)) < 0) {
        }
        if ((uint32_t)late > worst_us) {
            worst_us = late;
        }
        if (step < USB_STEPS) {
            exchange_usb(&cables[USB_CABLE]);
            if (++step == USB_STEPS) {
                cables[USB_CABLE].at_us = period_us;
                cables[USB_CABLE].ticks++;
            }
        } else {
            exchange_uart(&cables[UART_CABLE]);
            cables[UART_CABLE].at_us = due;
            cables[UART_CABLE].ticks++;
            step = 0;
            period_us += PERIOD_US;
        }
    } while (hardware_alarm_set_target(ALARM, from_us_since_boot(due_us() - EARLY_US)));
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
        for (unsigned n = 0; n < CABLES; ++n) {
            cables[n].allowed = cables[n].taken = cables[n].length = cables[n].sent = 0;
        }
        step = 0;
        period_us = (time_us_64() / PERIOD_US + 1) * PERIOD_US;
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

// ticks(cable): how many exchanges are over
static mp_obj_t grid_ticks(mp_obj_t number) {
    return MP_OBJ_NEW_SMALL_INT(cable_of(number)->ticks & 0x3FFFFFFF);
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_ticks_obj, grid_ticks);

// at_us(cable): when the last of them began, as ticks_us counts
static mp_obj_t grid_at_us(mp_obj_t number) {
    return MP_OBJ_NEW_SMALL_INT(cable_of(number)->at_us & (MICROPY_PY_TIME_TICKS_PERIOD - 1));
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_at_us_obj, grid_at_us);

// at_ms(cable): the same as ticks_ms counts; a tick comes at a whole millisecond
static mp_obj_t grid_at_ms(mp_obj_t number) {
    return MP_OBJ_NEW_SMALL_INT((cable_of(number)->at_us / 1000) & (MICROPY_PY_TIME_TICKS_PERIOD - 1));
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_at_ms_obj, grid_at_ms);

// older(cable, other): whether a cable's last tick was before the other one's
static mp_obj_t grid_older(mp_obj_t number, mp_obj_t other) {
    return mp_obj_new_bool(cable_of(number)->at_us < cable_of(other)->at_us);
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_older_obj, grid_older);

// due_us(): how long until the next exchange is over
static mp_obj_t grid_due_us(void) {
    uint64_t due = period_us + (step < USB_STEPS ? (USB_STEPS - 1) * USB_STEP_US : UART_AT_US);
    uint64_t now = time_us_64();
    return MP_OBJ_NEW_SMALL_INT(due > now ? due - now : 0);
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_due_us_obj, grid_due_us);

// allow(cable, bytes): so many may come in at the next tick
static mp_obj_t grid_allow(mp_obj_t number, mp_obj_t bytes) {
    cable_t *cable = cable_of(number);
    mp_int_t most = mp_obj_get_int(bytes);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    size_t room = IN_BYTES - cable->taken;
    cable->allowed = most < 0 ? 0 : MIN((size_t)most, room);
    MICROPY_END_ATOMIC_SECTION(state);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_allow_obj, grid_allow);

// take(cable, buffer): the bytes that have come in; how many there were
static mp_obj_t grid_take(mp_obj_t number, mp_obj_t buffer) {
    cable_t *cable = cable_of(number);
    mp_buffer_info_t into;
    mp_get_buffer_raise(buffer, &into, MP_BUFFER_WRITE);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    size_t taken = MIN(cable->taken, into.len);
    memcpy(into.buf, cable->in, taken);
    cable->taken = 0;
    MICROPY_END_ATOMIC_SECTION(state);
    return MP_OBJ_NEW_SMALL_INT(taken);
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_take_obj, grid_take);

// put(cable, data): send this at the next tick; False if there is no room for it
static mp_obj_t grid_put(mp_obj_t number, mp_obj_t data) {
    cable_t *cable = cable_of(number);
    mp_buffer_info_t from;
    mp_get_buffer_raise(data, &from, MP_BUFFER_READ);
    mp_uint_t state = MICROPY_BEGIN_ATOMIC_SECTION();
    if (cable->sent == cable->length) {
        cable->sent = cable->length = 0;
    }
    bool fits = cable->length + from.len <= OUT_BYTES;
    if (fits) {
        memcpy(cable->out + cable->length, from.buf, from.len);
        cable->length += from.len;
    }
    MICROPY_END_ATOMIC_SECTION(state);
    return mp_obj_new_bool(fits);
}
static MP_DEFINE_CONST_FUN_OBJ_2(grid_put_obj, grid_put);

// left(cable): how many bytes have not been sent yet
static mp_obj_t grid_left(mp_obj_t number) {
    cable_t *cable = cable_of(number);
    return MP_OBJ_NEW_SMALL_INT(cable->length - cable->sent);
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_left_obj, grid_left);

// rest(cable): those bytes; for when the grid has stopped
static mp_obj_t grid_rest(mp_obj_t number) {
    cable_t *cable = cable_of(number);
    mp_obj_t rest = mp_obj_new_bytes(cable->out + cable->sent, cable->length - cable->sent);
    cable->sent = cable->length;
    return rest;
}
static MP_DEFINE_CONST_FUN_OBJ_1(grid_rest_obj, grid_rest);

// worst_us(): the latest that an interrupt of the grid came since power-up
static mp_obj_t grid_worst_us(void) {
    return MP_OBJ_NEW_SMALL_INT(worst_us);
}
static MP_DEFINE_CONST_FUN_OBJ_0(grid_worst_us_obj, grid_worst_us);

static const mp_rom_map_elem_t grid_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_sabot_grid) },
    { MP_ROM_QSTR(MP_QSTR_start), MP_ROM_PTR(&grid_start_obj) },
    { MP_ROM_QSTR(MP_QSTR_stop), MP_ROM_PTR(&grid_stop_obj) },
    { MP_ROM_QSTR(MP_QSTR_ticks), MP_ROM_PTR(&grid_ticks_obj) },
    { MP_ROM_QSTR(MP_QSTR_at_us), MP_ROM_PTR(&grid_at_us_obj) },
    { MP_ROM_QSTR(MP_QSTR_at_ms), MP_ROM_PTR(&grid_at_ms_obj) },
    { MP_ROM_QSTR(MP_QSTR_older), MP_ROM_PTR(&grid_older_obj) },
    { MP_ROM_QSTR(MP_QSTR_due_us), MP_ROM_PTR(&grid_due_us_obj) },
    { MP_ROM_QSTR(MP_QSTR_allow), MP_ROM_PTR(&grid_allow_obj) },
    { MP_ROM_QSTR(MP_QSTR_take), MP_ROM_PTR(&grid_take_obj) },
    { MP_ROM_QSTR(MP_QSTR_put), MP_ROM_PTR(&grid_put_obj) },
    { MP_ROM_QSTR(MP_QSTR_left), MP_ROM_PTR(&grid_left_obj) },
    { MP_ROM_QSTR(MP_QSTR_rest), MP_ROM_PTR(&grid_rest_obj) },
    { MP_ROM_QSTR(MP_QSTR_worst_us), MP_ROM_PTR(&grid_worst_us_obj) },
};
static MP_DEFINE_CONST_DICT(grid_globals, grid_globals_table);

const mp_obj_module_t sabot_grid_module = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&grid_globals,
};
MP_REGISTER_MODULE(MP_QSTR_sabot_grid, sabot_grid_module);
