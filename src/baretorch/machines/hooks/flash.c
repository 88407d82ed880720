/* Simulate reads of flash: which accesses hit the caches, and which parts of lines are read from flash for the others.
 *
 * A basic block is fetched when it is entered, from its first byte to its last; then its loads follow, in their order.
 * If a line is not in the cache, the requested part of it is read: a fill. In a full set, the least recently used line is
 * evicted. The cost of a fill is not known here: fills are counted by the facts that determine it. Reads of interrupt
 * handlers go through the caches, and are not counted, because they are not the model's.
 */
#include "unicorn.h"

#include <string.h>

/* Whether that part of the line is there; it is afterwards. */
static int was_there(const bt_cache *cache, uint32_t address, uint32_t fill_bits)
{
    const uint32_t line = address >> cache->line_bits;
    const uint32_t part = (address >> fill_bits) & ((1u << (cache->line_bits - fill_bits)) - 1);
    bt_line *set = cache->lines + (line & cache->set_mask) * cache->ways;
    uint32_t way = 0;
    while (way < cache->ways - 1 && set[way].number != line + 1)
        way++;
    bt_line found = set[way].number == line + 1 ? set[way] : (bt_line){ line + 1, 0 };
    for (; way > 0; way--)
        set[way] = set[way - 1];
    const int there = (found.filled >> part) & 1;
    found.filled |= 1u << part;
    set[0] = found;
    return there;
}

static int goes_on(const bt_view *v, uint32_t kind, uint32_t address, uint64_t clock)
{
    if (v->ahead)
        return kind == CODE && address == v->next;
    return address == v->next && v->window != 0 && clock - v->when <= v->window &&
           (v->page == 0 || address % v->page != 0);
}

static void read_part(bt_core *c, bt_view *v, bt_fills *fills, uint32_t kind, uint32_t address)
{
    const bt_cache *cache = &v->caches[v->cache_of[kind]];
    const int there = cache->on && was_there(cache, address, v->fill_bits);
    const uint64_t clock = clock_of(c);
    if (!there) {
        fills->fills[goes_on(v, kind, address, clock)][kind] += !c->handling;
        v->when = clock;
    }
    if (v->ahead ? kind == CODE : !there)
        v->next = address + (1u << v->fill_bits);
}

static void note(bt_core *c, uint32_t kind, uint32_t address, uint32_t bytes)
{
    bt_flash *f = c->chip->flash;
    const bt_view *v = f->views;
    const uint32_t on = kind <= DATA ? v->caches[v->cache_of[kind]].on : v->caches[v->cache_of[DATA]].on;
    if (f->events == NULL)
        return;
    if (f->event_count < f->event_room)
        f->events[f->event_count] =
            (bt_event){ clock_of(c), address, (uint16_t)bytes, (uint8_t)kind, (uint8_t)(on | (c->handling ? 2 : 0)) };
    f->event_count++;
}

static void read_flash(bt_core *c, uint32_t kind, uint32_t address, uint32_t bytes)
{
    bt_flash *f = c->chip->flash;
    note(c, kind, address, bytes);
    for (uint32_t i = 0; i < f->view_count; i++) {
        const uint32_t fill = 1u << f->views[i].fill_bits;
        for (uint32_t at = address & ~(fill - 1); at < address + bytes; at += fill)
            read_part(c, &f->views[i], &c->fills[i], kind, at);
    }
}

void fetch(bt_core *c, uint32_t pc, uint32_t bytes)
{
    const bt_flash *f = c->chip->flash;
    if (pc - f->origin < f->bytes)
        read_flash(c, CODE, pc, bytes);
}

void bt_on_flash_read(void *unicorn, int kind, uint64_t address, int size, int64_t value, void *core)
{
    (void)kind;
    (void)value;
    clear_it_state(((bt_core *)core)->chip, unicorn);
    read_flash(core, DATA, (uint32_t)address, (uint32_t)size);
}

/* Data of RAM that goes through the same cache takes lines, and costs nothing here. */
void bt_on_ram(void *unicorn, int kind, uint64_t address, int size, int64_t value, void *core)
{
    bt_core *c = core;
    bt_flash *f = c->chip->flash;
    (void)kind;
    (void)value;
    clear_it_state(c->chip, unicorn);
    note(c, RAM_DATA, (uint32_t)address, (uint32_t)size);
    for (uint32_t i = 0; i < f->view_count; i++) {
        const bt_view *v = &f->views[i];
        const bt_cache *cache = &v->caches[v->cache_of[DATA]];
        if (cache->on)
            was_there(cache, (uint32_t)address, v->fill_bits);
    }
}

void begin_visits(bt_core *c)
{
    note(c, CALL_BEGINS, 0, 0);
    c->visit_count = 0;
    memset(c->fills, 0, sizeof c->fills);
}

/* A visit in which nothing was read is none. */
void write_visit(bt_core *c)
{
    static const bt_fills nothing[VIEWS];
    note(c, VISIT_ENDS, c->site, 0);
    if (memcmp(c->fills, nothing, sizeof nothing) == 0)
        return;
    if (c->visit_count < c->chip->row_room)
        c->visits[c->visit_count] = (bt_visit){ c->site, 0, { c->fills[0], c->fills[1] } };
    c->visit_count++;
    memset(c->fills, 0, sizeof c->fills);
}
