/* The additional needs of images that use two cores: clocks, events, the mailbox between the cores, and a check of what
 * both do to memory.
 *
 * Each core has a clock: its instructions and the time that it has waited. A core runs until it waits, however far ahead
 * of the other it is. So clocks are set where cores meet (bt_meet of kernels/cores.h): no core leaves a meeting before the
 * other has arrived. Between meetings cores must not share what one of them writes; bt_on_touch detects that error.
 */
#include "unicorn.h"

#include <string.h>

/* Notes whether the core is inside of bt_meet. */
void look_for_meeting(bt_core *c, uint32_t pc)
{
    const bt_chip *m = c->chip;
    c->pc = pc;
    c->meeting = 0;
    for (uint32_t i = 0; i < 2 * MEETINGS && m->meets[i + 1] != 0; i += 2) {
        if (pc < m->meets[i] || pc >= m->meets[i + 1])
            continue;
        c->meeting = 1;
        c->phase += pc == m->meets[i];
    }
}

/* In a meeting to which the other core has come as well: it is not left before that. */
static void catch_up(bt_core *c)
{
    const uint32_t slot = c->phase & 1;
    if (c->other->signalled_phase[slot] == c->phase)
        wait_until(c, c->other->signalled[slot]);
}

/* SEV: an event for all cores. */
void bt_signal(bt_core *c)
{
    const uint32_t slot = c->phase & 1;
    if (c->meeting && c->signalled_phase[slot] != c->phase) {
        c->signalled_phase[slot] = c->phase;
        c->signalled[slot] = clock_of(c);
        catch_up(c);
    }
    if (c->other->event_clock < clock_of(c))
        c->other->event_clock = clock_of(c);
    c->event = c->other->event = 1;
}

/* WFE: true if there has been an event; else the core sleeps until there is. */
int bt_wait(bt_core *c)
{
    c->asleep = !c->event;
    c->event = 0;
    if (!c->asleep && c->meeting)
        catch_up(c);
    else if (!c->asleep)
        wait_until(c, c->event_clock);
    return !c->asleep;
}

void bt_on_signal(void *unicorn, uint64_t address, uint32_t bytes, void *core)
{
    (void)unicorn;
    (void)address;
    (void)bytes;
    bt_signal(core);
}

uint32_t mail_status(const bt_core *c)
{
    return (c->mail_count ? MAIL_VALID : 0) | (c->other->mail_count < MAIL_ROOM ? MAIL_READY : 0);
}

uint32_t bt_take_mail(bt_core *c)
{
    if (c->mail_count == 0)
        return 0;
    const uint32_t word = c->mail[0];
    memmove(c->mail, c->mail + 1, --c->mail_count * sizeof word);
    return word;
}

void bt_send_mail(const bt_core *c, uint32_t word)
{
    if (c->other->mail_count < MAIL_ROOM)
        c->other->mail[c->other->mail_count++] = word;
}

/* Stacks are a core's own, and what bt_meet writes is made to be shared. */
static int is_watched(const bt_core *c, uint32_t address)
{
    const bt_chip *m = c->chip;
    return m->watching && !c->meeting && !m->race.found && (address < m->stacks[0] || address >= m->stacks[1]);
}

void bt_on_touch(void *unicorn, int kind, uint64_t address, int size, int64_t value, void *bank)
{
    enum { UNICORN_WRITES = 17 };
    const bt_bank *b = bank;
    const bt_core *c = b->core;
    bt_race *race = &c->chip->race;
    const uint32_t me = c->number, it = 1 - me, writes = kind == UNICORN_WRITES;
    const bt_access access = { c->phase + 1, c->pc, c->site };
    (void)value;
    clear_it_state(c->chip, unicorn);
    if (!is_watched(c, (uint32_t)address))
        return;
    bt_byte *byte = &b->bytes[address - b->origin];
    for (int i = 0; i < size; i++, byte++) {
        const bt_access *against = byte->wrote[it].phase == access.phase                ? &byte->wrote[it]
                                   : writes && byte->read[it].phase == access.phase ? &byte->read[it]
                                                                                    : NULL;
        if (against != NULL) {
            *race = (bt_race){ .found = 1, .address = (uint32_t)address + (uint32_t)i };
            race->phase = c->phase - c->chip->first_phase;
            race->writes[me] = writes;
            race->writes[it] = against == &byte->wrote[it];
            race->by[me] = access;
            race->by[it] = *against;
            stop(c->chip, unicorn, RACE);
            return;
        }
        *(writes ? &byte->wrote[me] : &byte->read[me]) = access;
    }
}
