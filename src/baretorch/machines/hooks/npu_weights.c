/* The weight decoders of the emulated Ethos-U: they decode streams of bits to numbers, and find the place of each number.
 *
 * Input is not trusted: nothing is read after the end of a stream, nothing is written after the end of a buffer, and the
 * result for an invalid stream is a negative number. */
#include <stdbool.h>
#include <stdint.h>

enum { ENDED = -1, FULL = -2, ILLEGAL = -3 };

typedef struct {
    const uint8_t *data;
    int64_t at, end; /* bits */
    bool ended;
} bits_t;

static uint32_t take(bits_t *in, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++, in->at++) {
        if (in->at >= in->end) {
            in->ended = true;
            return 0;
        }
        value |= (uint32_t)((in->data[in->at >> 3] >> (in->at & 7)) & 1) << i;
    }
    return value;
}

/* A palette of up to 32 values, and where the values begin that are not in it. Both have the sign in the lowest bit. */
typedef struct {
    int size, bits, offset;
    int16_t values[33];
} palette_t;

typedef struct {
    int weights, zeros;     /* how many there are: weights, and runs of zeros between them */
    int weight_div, run_div; /* bits of the remainders of Golomb-Rice codes */
    bool plain, truncated, runs, fresh;
} slice_t;

static int16_t unfold(int value)
{
    return (int16_t)((value & 1) ? -(value >> 1) : value >> 1);
}

enum { LONGEST = 32768, NO_RUNS = 6, END = 7, PLAIN = 7 };

/* Quotients and remainders come in chunks: the remainders of a chunk follow the quotients of the next one. */
static int read_slice(bits_t *in, const slice_t *s, int *weight, int *run)
{
    int weights = 0, runs = 0, placed = 0, run_placed = 0;
    int quotient = 0, run_quotient = 0;
    int last[12], last_run[12], last_count = 0, last_run_count = 0;
    const int run_unary = s->run_div < 3 ? 12 : 8;
    const int most = s->plain && s->weight_div > 5 ? 8 : 12;
    for (;;) {
        const int ahead = s->runs ? weights - runs : 0;
        const bool take_weights = (!s->runs || ahead < 8) && weights < s->weights;
        const bool take_runs = s->runs && ahead >= 0 && runs < s->zeros;
        int now[12], now_run[12], count = 0, run_count = 0;
        uint32_t unary = take_weights && !s->plain ? take(in, 12) : 0;
        if (take_runs) {
            const uint32_t ones = take(in, run_unary);
            for (int i = 0; i < run_unary; i++) {
                if ((ones >> i) & 1) {
                    run_quotient++;
                } else {
                    now_run[run_count++] = run_quotient;
                    run_quotient = 0;
                }
            }
            runs += run_count;
        }
        if (take_weights) {
            int twos = 0;
            for (int i = 0; i < most; i++) {
                twos += (int)((unary >> i) & 1);
            }
            uint32_t second = take(in, twos);
            for (int i = 0; i < most && count < s->weights - weights; i++) {
                int code = 0;
                if ((unary >> i) & 1) {
                    code = 1 + (int)(second & 1);
                    second >>= 1;
                }
                quotient += code;
                if (code < 2 || s->truncated) {
                    now[count++] = quotient;
                    quotient = 0;
                }
            }
            weights += count;
        }
        for (int i = 0; i < last_count && placed < s->weights; i++, placed++) {
            weight[placed] = (int)((uint32_t)last[i] << s->weight_div) + (int)take(in, s->weight_div);
        }
        for (int i = 0; i < last_run_count && run_placed < s->zeros; i++, run_placed++) {
            run[run_placed] = (int)((uint32_t)last_run[i] << s->run_div) + (int)take(in, s->run_div);
        }
        if (in->ended) {
            return ENDED;
        }
        if (!take_weights && !take_runs) {
            return placed == s->weights && (!s->runs || run_placed == s->zeros) ? 0 : ILLEGAL;
        }
        last_count = count;
        last_run_count = run_count;
        for (int i = 0; i < count; i++) {
            last[i] = now[i];
        }
        for (int i = 0; i < run_count; i++) {
            last_run[i] = now_run[i];
        }
    }
}

/* The standard decoder: how many weights there are, or what is wrong. Not reentrant. */
int bt_npu_decode(const uint8_t *data, int size, int16_t *out, int room)
{
    static int weight[LONGEST], run[LONGEST + 1];
    bits_t in = {data, 0, 8 * (int64_t)size, false};
    palette_t palette = {0};
    int made = 0;
    bool had_runs = false, first = true;
    while (in.end - in.at >= 3) {
        slice_t s = {0};
        s.run_div = (int)take(&in, 3);
        if (s.run_div == END) {
            in.at = (in.at + 7) & ~(int64_t)7;
            first = true;
            continue;
        }
        s.runs = s.run_div != NO_RUNS;
        s.weights = (int)take(&in, 15) + 1;
        s.weight_div = (int)take(&in, 3);
        s.truncated = take(&in, 1) != 0;
        s.fresh = take(&in, 1) != 0;
        if ((s.runs && s.run_div > 3) || (first && !s.fresh) || (!s.fresh && s.runs != had_runs)) {
            return ILLEGAL;
        }
        had_runs = s.runs;
        first = false;
        if (s.fresh) {
            palette.offset = (int)take(&in, 5);
            palette.size = (int)take(&in, 5);
            palette.size += palette.size > 0;
            palette.bits = (int)take(&in, 3) + 2;
            for (int i = 0; i < palette.size; i++) {
                palette.values[i] = (int16_t)take(&in, palette.bits);
            }
        }
        s.plain = s.weight_div == PLAIN;
        if (s.plain) {
            s.weight_div = palette.bits;
            for (int bits = 0; palette.size > 0; bits++) {
                if ((1 << bits) >= palette.size) {
                    s.weight_div = bits;
                    break;
                }
            }
        } else if (s.weight_div > 5) {
            return ILLEGAL;
        }
        s.zeros = s.weights + s.fresh;
        run[0] = 0;
        const int failed = read_slice(&in, &s, weight, run);
        if (failed) {
            return failed;
        }
        for (int i = -(int)s.fresh; i < s.weights; i++) {
            if (i >= 0) {
                const int v = weight[i];
                if (v < 0 || v >= 512) {
                    return ILLEGAL;
                }
                if (made == room) {
                    return FULL;
                }
                out[made++] = unfold(v < palette.size ? palette.values[v] : v - palette.size + palette.offset);
            }
            for (int n = s.runs ? run[i + s.fresh] : 0; n > 0; n--) {
                if (made == room) {
                    return FULL;
                }
                out[made++] = 0;
            }
        }
    }
    return made;
}

/* The fast decoder of the U85: a header of 256 bits, then bytes, or indices of 4 or 2 bits. `count` numbers are read. */
int bt_npu_decode_fast(const uint8_t *data, int size, int16_t *out, int count)
{
    bits_t in = {data, 0, 8 * (int64_t)size, false};
    const bool raw = take(&in, 1) != 0, small = take(&in, 1) != 0;
    int16_t table[16];
    in.at = 104;
    const int adjust = (int8_t)take(&in, 8);
    for (int i = 0; i < 16; i++) {
        table[i] = unfold((int)take(&in, 9));
    }
    if (raw && small) {
        return ILLEGAL;
    }
    for (int i = 0; i < count; i++) {
        out[i] = raw ? (int16_t)((int8_t)take(&in, 8) - adjust) : table[take(&in, small ? 2 : 4)];
    }
    return in.ended ? ENDED : count;
}

/* The order of weights in a stream, and their destination: [output][row][column][input], of int16. */
typedef struct {
    int32_t outputs, rows, columns, inputs; /* of the layer; a depthwise one has 1 input */
    int32_t block, input_block;             /* depths of blocks: outputs and inputs */
    int32_t unit, input_unit;               /* and of the units that work at once */
    int32_t sub_rows, sub_columns;          /* the part of a kernel that is done at a time */
    int32_t round;                          /* to a multiple of so many elements of a kernel */
    int32_t stride_y, stride_x;             /* U85: elements that a stride keeps apart come one after the other */
    int32_t padding;                        /* U85, depthwise: elements of nothing after each `round` */
    int32_t part_kernel, depthwise, sparse;
    int32_t core, cores;
} order_t;

static int least(int a, int b)
{
    return a < b ? a : b;
}

typedef struct {
    const order_t *o;
    const int16_t *in;
    int16_t *out;
    int count, at;
    bool stray; /* a place without a weight had a number other than zero */
} walk_t;

static void place(walk_t *w, int output, int row, int column, int input)
{
    const order_t *o = w->o;
    if (w->at < w->count) {
        if (output < o->outputs && input < o->inputs && row < o->rows && column < o->columns) {
            w->out[((output * o->rows + row) * o->columns + column) * o->inputs + input] = w->in[w->at];
        } else if (w->in[w->at]) {
            w->stray = true;
        }
    }
    w->at++;
}

static int walked(const walk_t *w)
{
    return w->stray ? ILLEGAL : w->at;
}

/* U55 and U65. Cores take channels in turn. The result is how many numbers the layer takes: right if that many are there. */
int bt_npu_order_u55(const order_t *o, const int16_t *in, int count, int16_t *out)
{
    walk_t w = {o, in, out, count, 0, false};
    const int depth = (o->outputs + o->cores - 1 - o->core) / o->cores;
    const int block = (o->block + o->cores - 1 - o->core) / o->cores;
    const int inputs = o->depthwise ? 1 : o->inputs;
    for (int b = 0; b < depth; b += block) {
        const int outputs = least(block, depth - b);
        for (int ib = 0; ib < inputs; ib += o->input_block) {
            int deep = o->part_kernel ? least(o->input_block, inputs - ib) : o->input_block;
            if (o->depthwise) {
                deep = o->input_unit;
            }
            for (int sy = 0; sy < o->rows; sy += o->sub_rows) {
                const int rows = least(o->rows - sy, o->sub_rows);
                for (int sx = 0; sx < o->columns; sx += o->sub_columns) {
                    const int columns = least(o->columns - sx, o->sub_columns);
                    const int elements = (rows * columns + o->round - 1) / o->round * o->round;
                    for (int outer = 0; outer < (o->part_kernel ? deep : 1); outer += o->input_unit) {
                        for (int u = 0; u < outputs; u += o->unit) {
                            for (int e = 0; e < elements; e++) {
                                const int y = e / columns, x = e % columns;
                                for (int inner = 0; inner < (o->part_kernel ? 1 : deep); inner += o->input_unit) {
                                    for (int z = 0; z < o->unit; z++) {
                                        for (int i = 0; i < (o->depthwise ? 1 : o->input_unit); i++) {
                                            const int output = b + u + z;
                                            place(&w, output < depth ? output * o->cores + o->core : o->outputs,
                                                  y < rows ? sy + y : o->rows, sx + x, ib + outer + inner + i);
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    return walked(&w);
}

/* One element of a U85's kernel: cores take four channels in turn. */
static void element_u85(walk_t *w, int output, int row, int column, int input)
{
    const order_t *o = w->o;
    const int step = o->depthwise ? 1 : o->sparse ? 16 : 8;
    for (int inner = 0; inner < o->input_unit; inner += step) {
        for (int z = 4 * o->core; z < o->unit; z += 4 * o->cores) {
            for (int four = 0; four < 4; four++) {
                for (int i = 0; i < step; i++) {
                    place(w, output + z + four, row, column, input + inner + i);
                }
            }
        }
    }
}

static void nothing(walk_t *w, int count)
{
    for (int i = 0; i < count; i++) {
        place(w, w->o->outputs, 0, 0, 0);
    }
}

static void kernel_u85(walk_t *w, int output, int input, int sy, int sx)
{
    const order_t *o = w->o;
    const int rows = least(o->rows - sy, o->sub_rows), columns = least(o->columns - sx, o->sub_columns);
    int left = (rows * columns + o->round - 1) / o->round * o->round;
    for (int py = 0; py < o->stride_y; py++) {
        const int high = (rows + o->stride_y - 1 - py) / o->stride_y;
        for (int px = 0; px < o->stride_x; px++) {
            const int wide = (columns + o->stride_x - 1 - px) / o->stride_x;
            for (int y = 0; y < high; y++) {
                for (int x = 0; x < wide; x++) {
                    const int there = y % 2 == 0 ? x : wide - 1 - x;
                    left--;
                    element_u85(w, output, sy + py + y * o->stride_y, sx + px + there * o->stride_x, input);
                    if (o->depthwise && left % o->round == 0) {
                        nothing(w, o->padding * o->unit / o->cores);
                    }
                }
            }
        }
    }
    if (left > 0) {
        nothing(w, (left + (o->depthwise ? o->padding : 0)) * o->input_unit * o->unit / o->cores);
    }
}

int bt_npu_order_u85(const order_t *o, const int16_t *in, int count, int16_t *out)
{
    walk_t w = {o, in, out, count, 0, false};
    const int inputs = o->depthwise ? 1 : o->inputs;
    int direction = -o->input_block, first = 0;
    for (int b = 0; b < o->outputs; b += o->block) {
        const int outputs = least(o->block, o->outputs - b);
        direction = -direction;
        for (int ib = first; ib < inputs && ib >= 0; ib += direction) {
            first = ib;
            const int deep = o->depthwise ? 1 : least(o->input_block, inputs - ib);
            for (int sx = 0; sx < o->columns; sx += o->sub_columns) {
                for (int sy = 0; sy < o->rows; sy += o->sub_rows) {
                    for (int outer = 0; outer < deep; outer += o->input_unit) {
                        for (int u = 0; u < outputs; u += o->unit) {
                            kernel_u85(&w, b + u, ib + outer, sy, sx);
                        }
                    }
                }
            }
        }
    }
    return walked(&w);
}
