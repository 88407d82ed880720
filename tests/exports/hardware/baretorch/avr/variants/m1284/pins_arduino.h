/* Of a board that has nothing but its serial port. */
#ifndef PINS_ARDUINO_H
#define PINS_ARDUINO_H

#include <avr/pgmspace.h>

#define NUM_DIGITAL_PINS 1
#define NUM_ANALOG_INPUTS 0
#define digitalPinHasPWM(p) 0

#ifdef ARDUINO_MAIN
const uint16_t PROGMEM port_to_mode_PGM[] = { NOT_A_PORT, NOT_A_PORT, (uint16_t)&DDRB };
const uint16_t PROGMEM port_to_output_PGM[] = { NOT_A_PORT, NOT_A_PORT, (uint16_t)&PORTB };
const uint16_t PROGMEM port_to_input_PGM[] = { NOT_A_PORT, NOT_A_PORT, (uint16_t)&PINB };
const uint8_t PROGMEM digital_pin_to_port_PGM[] = { PB };
const uint8_t PROGMEM digital_pin_to_bit_mask_PGM[] = { _BV(0) };
const uint8_t PROGMEM digital_pin_to_timer_PGM[] = { NOT_ON_TIMER };
#endif

#endif
