/* What the rarer CORE-V instructions compute. Each is given the instruction, rs1, rs2 and rd. */
#include "decode.h"

static uint32_t field(uint32_t w, unsigned high, unsigned low)
{
    return w >> low & ((2u << (high - low)) - 1u);
}

static uint32_t reversed(uint32_t value, unsigned group)
{
    uint32_t out = 0;
    for (unsigned i = 0; i < 32u / group; i++) {
        out |= (value >> (32u - group * (i + 1u)) & ((1u << group) - 1u)) << group * i;
    }
    return out;
}

uint32_t bt_bits(uint32_t w, uint32_t a, uint32_t b, uint32_t d)
{
    enum { EXTRACT, EXTRACTU, INSERT, CLEAR = 4, SET, REVERSE = 7 };
    bool immediate = field(w, 6, 0) == 0x5b;
    uint32_t low = immediate ? field(w, 24, 20) : b & 31u;
    uint32_t width = immediate ? field(w, 29, 25) : b >> 5 & 31u; /* less one */
    uint32_t what = immediate ? field(w, 12, 12) << 2 | w >> 30 : field(w, 27, 25);
    uint32_t ones = ~(0xfffffffeu << width), mask = ones << low;
    switch (what) {
    case EXTRACT: {
        uint32_t got = (uint32_t)((int32_t)a >> low);
        return (got & ones) | ((got >> width & 1u) != 0 ? ~ones : 0u);
    }
    case EXTRACTU:
        return a >> low & ones;
    case INSERT:
        return (a << low & mask) | (d & ~mask);
    case CLEAR:
        return a & ~mask;
    case SET:
        return a | mask;
    default:
        return reversed(a << low, width == 1 || width == 2 ? width + 1u : 1u);
    }
}

static uint32_t shifted(uint32_t value, uint32_t by, bool round, bool is_unsigned)
{
    value += round && by != 0 ? 1u << (by - 1u) : 0u;
    return is_unsigned ? value >> by : (uint32_t)((int32_t)value >> by);
}

uint32_t bt_add_shift(uint32_t w, uint32_t a, uint32_t b, uint32_t d)
{
    if (field(w, 6, 0) == 0x5b) {
        uint32_t sum = field(w, 12, 12) != 0 ? a - b : a + b;
        return shifted(sum, field(w, 29, 25), field(w, 31, 31) != 0, field(w, 30, 30) != 0);
    }
    uint32_t sum = field(w, 27, 27) != 0 ? d - a : d + a;
    return shifted(sum, b & 31u, field(w, 26, 26) != 0, field(w, 25, 25) != 0);
}

uint32_t bt_mul_shift(uint32_t w, uint32_t a, uint32_t b, uint32_t d)
{
    bool is_unsigned = field(w, 12, 12) != 0;
    if (field(w, 30, 30) != 0) {
        a >>= 16;
        b >>= 16;
    }
    uint32_t product = is_unsigned ? (a & 0xffffu) * (b & 0xffffu) : (uint32_t)((int16_t)a * (int16_t)b);
    return shifted(product + (field(w, 13, 13) != 0 ? d : 0u), field(w, 29, 25), field(w, 31, 31) != 0, is_unsigned);
}

/* SIMD: elements of 8 or 16 bits. The operation is bits 31 to 26; bits 14 to 12 say size and second operand. */

enum { ADD = 0x00, SUB = 0x02, AVG = 0x04, AVGU = 0x06, MIN = 0x08, MINU = 0x0a, MAX = 0x0c, MAXU = 0x0e, SRL = 0x10,
       SRA = 0x12, SLL = 0x14, OR = 0x16, XOR = 0x18, AND = 0x1a, ABS = 0x1c, DOTUP = 0x20, SDOTSP = 0x2a,
       ELEMENT = 0x2e, SHUFFLE = 0x30, SHUFFLE_I3 = 0x36, SHUFFLE2 = 0x38, PACK = 0x3c, PACK_BYTES = 0x3e,
       CMPEQ = 0x01, CMPLEU = 0x13, COMPLEX_MUL = 0x15, CONJUGATE = 0x17, SUB_ROTATE = 0x19, ADD_DIV = 0x1b,
       SUB_DIV = 0x1d };

bool bt_simd_known(uint32_t w)
{
    uint32_t op = field(w, 31, 26), f3 = field(w, 14, 12), imm = field(w, 24, 20);
    bool immediate = f3 >= 6, plain = f3 < 2, bit25 = field(w, 25, 25) != 0;
    bool modes = (f3 & 6u) != 2u && (immediate || !bit25);
    if (op == SRL || op == SRA || op == SLL) {
        return modes && !(f3 == 6 && imm >= 8) && !(f3 == 7 && imm >= 4);
    }
    if (op <= AND && (op & 1u) == 0) {
        return modes;
    }
    if (op == ABS) {
        return plain && !bit25 && imm == 0;
    }
    if ((op & 1u) != 0 && op <= CMPLEU) {
        return modes;
    }
    if (op >= DOTUP && op <= SDOTSP && (op & 1u) == 0) {
        return modes;
    }
    switch (op) {
    case ELEMENT:
        return f3 < 6 && imm < ((f3 & 1u) != 0 ? 2u : 1u);
    case SHUFFLE:
        return plain ? !bit25 : f3 == 7 || (f3 == 6 && imm < 2);
    case 0x32:
    case 0x34:
    case SHUFFLE_I3:
        return f3 == 7;
    case SHUFFLE2:
        return plain && !bit25;
    case PACK:
        return f3 == 0;
    case PACK_BYTES:
        return f3 == 1;
    case COMPLEX_MUL:
        return (f3 & 1u) == 0;
    case CONJUGATE:
        return f3 == 0 && !bit25 && imm == 0;
    case SUB_ROTATE:
        return (f3 & 1u) == 0 && !bit25;
    case ADD_DIV:
    case SUB_DIV:
        return (f3 & 1u) == 0 && f3 != 0 && !bit25;
    default:
        return false;
    }
}

static uint32_t element(uint32_t value, unsigned i, unsigned width)
{
    return value >> width * i & ((1u << width) - 1u);
}

static int32_t as_signed(uint32_t value, unsigned width)
{
    return (int32_t)(value << (32u - width)) >> (32u - width);
}

static uint32_t replicated(uint32_t value, unsigned width)
{
    value &= (1u << width) - 1u;
    return width == 8 ? value * 0x01010101u : value * 0x00010001u;
}

/* Immediates of these are unsigned: comparisons and minima of that kind, averages, dot products of unsigned. */
static bool immediate_unsigned(uint32_t op)
{
    bool compares = op >= 0x0d && op <= CMPLEU && (op & 1u) != 0;
    return compares || op == AVGU || op == MINU || op == MAXU || op == DOTUP || op == 0x26;
}

static uint32_t lane(uint32_t op, uint32_t a, uint32_t b, unsigned width)
{
    int32_t sa = as_signed(a, width), sb = as_signed(b, width);
    switch (op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case AVG:
        return (uint32_t)(as_signed(a + b, width) >> 1);
    case AVGU:
        return ((a + b) & ((1u << width) - 1u)) >> 1;
    case MIN:
        return sa < sb ? a : b;
    case MINU:
        return a < b ? a : b;
    case MAX:
        return sa > sb ? a : b;
    case MAXU:
        return a > b ? a : b;
    case SRL:
        return a >> (b & (width - 1u));
    case SRA:
        return (uint32_t)(sa >> (b & (width - 1u)));
    case SLL:
        return a << (b & (width - 1u));
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case AND:
        return a & b;
    case ABS:
        return sa < 0 ? (uint32_t)-sa : a;
    case 0x01:
        return a == b ? ~0u : 0u;
    case 0x03:
        return a != b ? ~0u : 0u;
    case 0x05:
        return sa > sb ? ~0u : 0u;
    case 0x07:
        return sa >= sb ? ~0u : 0u;
    case 0x09:
        return sa < sb ? ~0u : 0u;
    case 0x0b:
        return sa <= sb ? ~0u : 0u;
    case 0x0d:
        return a > b ? ~0u : 0u;
    case 0x0f:
        return a >= b ? ~0u : 0u;
    case 0x11:
        return a < b ? ~0u : 0u;
    default:
        return a <= b ? ~0u : 0u;
    }
}

static uint32_t dot(uint32_t op, uint32_t a, uint32_t b, uint32_t d, unsigned width)
{
    uint32_t sum = op >= 0x26 ? d : 0u; /* dot or sdot; up, usp, sp */
    uint32_t form = (op - (op >= 0x26 ? 0x26u : 0x20u)) / 2u;
    for (unsigned i = 0; i < 32u / width; i++) {
        uint32_t x = element(a, i, width), y = element(b, i, width);
        uint32_t left = form == 2 ? (uint32_t)as_signed(x, width) : x;
        sum += left * (form != 0 ? (uint32_t)as_signed(y, width) : y);
    }
    return sum;
}

static uint32_t complex_op(uint32_t w, uint32_t a, uint32_t b, uint32_t d)
{
    uint32_t op = field(w, 31, 26), by = field(w, 14, 13);
    int32_t ar = as_signed(a, 16), ai = as_signed(a >> 16, 16), br = as_signed(b, 16), bi = as_signed(b >> 16, 16);
    if (op == COMPLEX_MUL) {
        bool imaginary = field(w, 25, 25) != 0;
        int64_t sum = imaginary ? (int64_t)ar * bi + (int64_t)ai * br : (int64_t)ar * br - (int64_t)ai * bi;
        uint32_t part = (uint32_t)((int32_t)(uint32_t)sum >> (15u + by)) & 0xffffu;
        return imaginary ? part << 16 | (d & 0xffffu) : (d & 0xffff0000u) | part;
    }
    if (op == CONJUGATE) {
        return (uint32_t)-ai << 16 | (a & 0xffffu);
    }
    int32_t high = op == SUB_ROTATE ? br - ar : op == ADD_DIV ? ai + bi : ai - bi;
    int32_t low = op == SUB_ROTATE ? ai - bi : op == ADD_DIV ? ar + br : ar - br;
    high = as_signed((uint32_t)high, 16) >> by;
    low = as_signed((uint32_t)low, 16) >> by;
    return (uint32_t)high << 16 | ((uint32_t)low & 0xffffu);
}

static uint32_t move_elements(uint32_t w, uint32_t a, uint32_t b, uint32_t d, unsigned width)
{
    uint32_t op = field(w, 31, 26), f3 = field(w, 14, 12);
    uint32_t imm = field(w, 24, 20) << 1 | field(w, 25, 25);
    uint32_t mask = (1u << width) - 1u, out = 0;
    unsigned count = 32u / width, index = width == 8 ? 3u : 1u;
    if (op == ELEMENT) {
        unsigned at = imm & index;
        uint32_t got = element(a, at, width);
        if (f3 >= 4) {
            return (d & ~(mask << width * at)) | (a & mask) << width * at;
        }
        return f3 >= 2 ? got : (uint32_t)as_signed(got, width);
    }
    if (op == PACK) {
        return field(w, 25, 25) != 0 ? (a & 0xffff0000u) | b >> 16 : a << 16 | (b & 0xffffu);
    }
    if (op == PACK_BYTES) {
        uint32_t pair = (a & 0xffu) << 8 | (b & 0xffu);
        return field(w, 25, 25) != 0 ? (d & 0xffffu) | pair << 16 : (d & 0xffff0000u) | pair;
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t select = element(b, i, width), from = a;
        if (f3 >= 6) {
            bool last = width == 8 && i == 3;
            select = last ? (op - SHUFFLE) / 2u : imm >> (width == 8 ? 2u : 1u) * i;
        } else if (op == SHUFFLE2) {
            from = (select & (index + 1u)) != 0 ? a : d;
        }
        out |= element(from, select & index, width) << width * i;
    }
    return out;
}

uint32_t bt_simd(uint32_t w, uint32_t a, uint32_t b, uint32_t d)
{
    uint32_t op = field(w, 31, 26), f3 = field(w, 14, 12);
    unsigned width = (f3 & 1u) != 0 ? 8 : 16;
    if (op >= COMPLEX_MUL && op <= SUB_DIV && (op & 1u) != 0) {
        return complex_op(w, a, b, d);
    }
    if (op >= ELEMENT) {
        return move_elements(w, a, b, d, width);
    }
    if (f3 >= 6) {
        uint32_t imm = field(w, 24, 20) << 1 | field(w, 25, 25);
        b = replicated(immediate_unsigned(op) ? imm : (uint32_t)as_signed(imm, 6), width);
    } else if (f3 >= 4) {
        b = replicated(b, width);
    }
    if (op >= DOTUP) {
        return dot(op, a, b, d, width);
    }
    uint32_t out = 0, mask = (1u << width) - 1u;
    for (unsigned i = 0; i < 32u / width; i++) {
        out |= (lane(op, element(a, i, width), element(b, i, width), width) & mask) << width * i;
    }
    return out;
}
