/* Recurrent layers for cores with the DSP extension (Cortex-M4, M7, M33): the gates of a unit together.
 *
 * Input and hidden state are halfwords while a step lasts, as the weights are, so that a word of each is two products
 * for a dual multiply. Per 32 products lstm and rnn take 21 instructions, gru 21.3; what is left of a unit stays in
 * registers: 47 instructions for lstm, 38 for gru, 14 for rnn. */
#include "curves.h"

#include "../dsp.h"

/* The operands of a step. Its assembler has a copy on the stack: the offsets below are those of the fields there,
 * after six entries. */
typedef struct {
    const int32_t *weights;
    int32_t single; /* where code for the input begins and where its first whole block does, see bt_entries */
    int32_t block;
    int32_t single_hh; /* the same of the hidden state; of lstm and rnn, input and hidden state are one */
    int32_t block_hh;
    int32_t exit; /* gru: where a turn leads to, see BT_EXITS */
    int32_t exit_hh;
    const int32_t *x; /* input and hidden state, where they end, and where the hidden state begins */
    const int32_t *x_end;
    const int32_t *border;
    const int32_t *middle; /* of the table */
    int16_t *h;
    void *y;
    int16_t *c;
    int32_t multiplier; /* from h to y */
    int32_t zero;
    int32_t y_shift;
    int16_t *h_end;
    int32_t below; /* gru: what tanh subtracts from twice a sigmoid, and half of the bits dropped */
    int32_t half;
} bt_step;

#define BT_AT_X "24"
#define BT_AT_X_END "28"
#define BT_AT_BORDER "32"
#define BT_AT_MIDDLE "36"
#define BT_AT_H "40" /* and y */
#define BT_AT_Y "44"
#define BT_AT_C "48"
#define BT_AT_MULTIPLIER "52" /* and zero */
#define BT_AT_Y_SHIFT "60"
#define BT_AT_H_END "64"
#define BT_AT_BELOW "68" /* and half */
#define BT_AT_APART "76" /* gru: the input's sums of two candidates */

/* r0 has a bt_step: its fields from x on are copied to the stack, after six words for entries, and r1 has the weights.
 * r2 to r5 have what leads to the entries. */
#define BT_STEP_BEGINS                                                                                                 \
    ".balign 4\n\t" /* adr counts from a multiple of four */                                                           \
    "push {r7}\n\t"                                                                                                    \
    "add r6, r0, #28\n\t"                                                                                              \
    "ldmia r0, {r1, r2, r3, r4, r5}\n\t"                                                                               \
    "ldmia r6!, {r7, r8, r9, r10, r11, r12}\n\t"                                                                       \
    "sub sp, sp, #88\n\t"                                                                                              \
    "add lr, sp, #24\n\t"                                                                                              \
    "stmia lr!, {r7, r8, r9, r10, r11, r12}\n\t"                                                                       \
    "ldmia r6, {r6, r7, r8, r9, r10, r11, r12}\n\t"                                                                    \
    "stmia lr, {r6, r7, r8, r9, r10, r11, r12}\n\t"
#define BT_STEP_ENDS                                                                                                   \
    "add sp, sp, #88\n\t"                                                                                              \
    "pop {r7}\n\t"

/* Where a row's first word is multiplied, and its first whole block: at these distances from a label. */
#define BT_ENTRIES(at, single, block, label)                                                                           \
    "adr.w r7, " label "\n\t"                                                                                          \
    "add " single ", " single ", r7\n\t"                                                                               \
    "add " block ", " block ", r7\n\t"                                                                                 \
    "strd " single ", " block ", [sp, #" at "]\n\t"

/* Four rows: sums in r2 to r5. */
#define BT_FOUR_WORDS(x)                                                                                               \
    "ldmia r1!, {r10, r11, r12, lr}\n\t"                                                                               \
    "smlad r2, r10, " x ", r2\n\t"                                                                                     \
    "smlad r3, r11, " x ", r3\n\t"                                                                                     \
    "smlad r4, r12, " x ", r4\n\t"                                                                                     \
    "smlad r5, lr, " x ", r5\n\t"
#define BT_FOUR_SINGLE "ldr r6, [r0], #4\n\t" BT_FOUR_WORDS("r6")
#define BT_FOUR_BLOCK                                                                                                  \
    "ldmia r0!, {r6, r7, r8, r9}\n\t" BT_FOUR_WORDS("r6") BT_FOUR_WORDS("r7") BT_FOUR_WORDS("r8") BT_FOUR_WORDS("r9")
#define BT_FOUR_ENTRIES BT_ENTRIES("0", "r2", "r3", "2f")
/* Sums from their first values to the products with their multipliers, in r2 to r5. */
#define BT_FOUR_ROWS                                                                                                   \
    "ldmia r1!, {r2, r3, r4, r5}\n\t"                                                                                  \
    "ldr r0, [sp, #" BT_AT_X "]\n\t"                                                                                   \
    "ldr.w pc, [sp, #0]\n"                                                                                             \
    "2:\n\t" BT_FOUR_SINGLE BT_FOUR_SINGLE BT_FOUR_SINGLE "ldr.w pc, [sp, #4]\n"                                       \
    "3:\n\t" BT_FOUR_BLOCK BT_FOUR_BLOCK BT_FOUR_BLOCK BT_FOUR_BLOCK                                                   \
    "ldr r6, [sp, #" BT_AT_X_END "]\n\t"                                                                               \
    "cmp r0, r6\n\t"                                                                                                   \
    "bne 3b\n\t"                                                                                                       \
    "ldmia r1!, {r6, r7, r8, r9}\n\t"                                                                                  \
    "smmulr r2, r2, r6\n\t"                                                                                            \
    "smmulr r3, r3, r7\n\t"                                                                                            \
    "smmulr r4, r4, r8\n\t"                                                                                            \
    "smmulr r5, r5, r9\n\t"

/* Six rows, those of two units: sums in r2 to r7. */
#define BT_SIX_SINGLE                                                                                                  \
    "ldr r8, [r0], #4\n\t" BT_FOUR_WORDS("r8")                                                                           \
    "ldmia r1!, {r10, r11}\n\t"                                                                                        \
    "smlad r6, r10, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r8, r7\n\t"
#define BT_SIX_BLOCK                                                                                                   \
    "ldmia r0!, {r8, r9}\n\t" BT_FOUR_WORDS("r8")                                                                        \
    "ldmia r1!, {r10, r11, r12, lr}\n\t"                                                                               \
    "smlad r6, r10, r8, r6\n\t"                                                                                        \
    "smlad r7, r11, r8, r7\n\t"                                                                                        \
    "smlad r2, r12, r9, r2\n\t"                                                                                        \
    "smlad r3, lr, r9, r3\n\t"                                                                                         \
    "ldmia r1!, {r10, r11, r12, lr}\n\t"                                                                               \
    "smlad r4, r10, r9, r4\n\t"                                                                                        \
    "smlad r5, r11, r9, r5\n\t"                                                                                        \
    "smlad r6, r12, r9, r6\n\t"                                                                                        \
    "smlad r7, lr, r9, r7\n\t"
#define BT_SIX_TEN                                                                                                     \
    BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK                                                   \
    BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK BT_SIX_BLOCK

/* Where a turn leads to: on, or to three instructions before that ask whether there is another one. */
#define BT_SKIPPED 10 /* their bytes */
#define BT_EXITS                                                                                                       \
    "ldrd r2, r3, [r0, #20]\n\t"                                                                                       \
    "adr.w r7, 4f\n\t"                                                                                                 \
    "add r2, r2, r7\n\t"                                                                                               \
    "adr.w r7, 7f\n\t"                                                                                                 \
    "add r3, r3, r7\n\t"                                                                                               \
    "strd r2, r3, [sp, #16]\n\t"

/* v = its sigmoid with 29 fractional bits; r10 has the table. */
#define BT_SIGMOID(v)                                                                                                  \
    "ssat r11, #8, " v ", asr #8\n\t"                                                                                  \
    "ldr r11, [r10, r11, lsl #2]\n\t"                                                                                  \
    "smlabb " v ", " v ", r11, r11\n\t"

/* The next number of y is that of v; r11 and r12 have multiplier and zero point. */
#define BT_GIVE8(v, y)                                                                                                   \
    "smmlar " v ", " v ", r11, r12\n\t"                                                                                \
    "ssat " v ", #8, " v "\n\t"                                                                                        \
    "strb " v ", [" y "], #1\n\t"
#define BT_GIVE16(v, y)                                                                                                  \
    "ldr lr, [sp, #" BT_AT_Y_SHIFT "]\n\t"                                                                             \
    "lsl " v ", " v ", lr\n\t"                                                                                         \
    "smmlar " v ", " v ", r11, r12\n\t"                                                                                \
    "ssat " v ", #16, " v "\n\t"                                                                                       \
    "strh " v ", [" y "], #2\n\t"
/* Until h is at its end. */
#define BT_NEXT(h, y)                                                                                                  \
    "strd " h ", " y ", [sp, #" BT_AT_H "]\n\t"                                                                        \
    "ldr r7, [sp, #" BT_AT_H_END "]\n\t"                                                                               \
    "cmp " h ", r7\n\t"                                                                                                \
    "bne 1b\n\t"

#define BT_LSTM_STEP(give)                                                                                             \
    BT_STEP_BEGINS BT_FOUR_ENTRIES                                                                                     \
        "1:\n\t" BT_FOUR_ROWS                                                                                          \
        "ldr r10, [sp, #" BT_AT_MIDDLE "]\n\t" /**/                                                                    \
        BT_SIGMOID("r2") BT_SIGMOID("r3") BT_SIGMOID("r4") BT_SIGMOID("r5")                                            \
        "ldr r7, [sp, #" BT_AT_C "]\n\t"                                                                               \
        "sub r4, r4, #0x10000000\n\t"                                                                                  \
        "mov r6, #0x2000\n\t"                                                                                          \
        "smlatt r4, r2, r4, r6\n\t"                                                                                    \
        "ldrsh r6, [r7]\n\t"                                                                                           \
        "smultb r3, r3, r6\n\t"                                                                                        \
        "add r4, r4, r3, lsl #1\n\t"                                                                                   \
        "ssat r4, #16, r4, asr #14\n\t"                                                                                \
        "strh r4, [r7], #2\n\t"                                                                                        \
        "ssat r6, #8, r4, asr #6\n\t"                                                                                  \
        "ldr r6, [r10, r6, lsl #2]\n\t"                                                                                \
        "lsl r4, r4, #2\n\t"                                                                                           \
        "smlabb r4, r4, r6, r6\n\t"                                                                                    \
        "sub r4, r4, #0x10000000\n\t"                                                                                  \
        "mov r6, #0x800\n\t"                                                                                           \
        "smlatt r4, r5, r4, r6\n\t"                                                                                    \
        "asr r4, r4, #12\n\t"                                                                                          \
        "ldrd r8, r9, [sp, #" BT_AT_H "]\n\t"                                                                          \
        "strh r4, [r8], #2\n\t"                                                                                        \
        "str r7, [sp, #" BT_AT_C "]\n\t"                                                                               \
        "ldrd r11, r12, [sp, #" BT_AT_MULTIPLIER "]\n\t" give("r4", "r9") BT_NEXT("r8", "r9") BT_STEP_ENDS

/* u = sigmoid of twice a candidate, from the sigmoid of reset and the candidate's sums of the hidden state and of the
 * input. */
#define BT_GRU_UNIT(r, u, v)                                                                                           \
    "ssat " u ", #16, " u "\n\t"                                                                                       \
    "smlatb " u ", " r ", " u ", lr\n\t"                                                                               \
    "add " u ", " v ", " u ", asr #13\n\t"                                                                             \
    "ssat " r ", #8, " u ", asr #7\n\t"                                                                                \
    "ldr " r ", [r10, " r ", lsl #2]\n\t"                                                                              \
    "lsl " u ", " u ", #1\n\t"                                                                                         \
    "smlabb " u ", " u ", " r ", " r "\n\t"

/* The next two numbers of y, at r12, are those of the halfwords of r4; r2 and r3 have multiplier and zero point, which
 * for int8 is that of 2^16 times the number and a half. */
#define BT_GIVE8_TWO                                                                                                   \
    "smlawb r5, r2, r4, r3\n\t"                                                                                        \
    "ssat r5, #8, r5, asr #16\n\t"                                                                                     \
    "strb r5, [r12], #1\n\t"                                                                                           \
    "smlawt r6, r2, r4, r3\n\t"                                                                                        \
    "ssat r6, #8, r6, asr #16\n\t"                                                                                     \
    "strb r6, [r12], #1\n\t"
#define BT_GIVE16_TWO                                                                                                  \
    "ldr lr, [sp, #" BT_AT_Y_SHIFT "]\n\t"                                                                             \
    "sxth r5, r4\n\t"                                                                                                  \
    "asr r6, r4, #16\n\t"                                                                                              \
    "lsl r5, r5, lr\n\t"                                                                                               \
    "lsl r6, r6, lr\n\t"                                                                                               \
    "smmlar r5, r5, r2, r3\n\t"                                                                                        \
    "ssat r5, #16, r5\n\t"                                                                                             \
    "strh r5, [r12], #2\n\t"                                                                                           \
    "smmlar r6, r6, r2, r3\n\t"                                                                                        \
    "ssat r6, #16, r6\n\t"                                                                                             \
    "strh r6, [r12], #2\n\t"

/* Two units are halfwords of one word from their candidates on. */
#define BT_GRU_STEP(give)                                                                                              \
    BT_STEP_BEGINS BT_ENTRIES("0", "r2", "r3", "2f") BT_ENTRIES("8", "r4", "r5", "5f")                                 \
        BT_EXITS                                                                                                       \
        "1:\n\t"                                                                                                       \
        "ldmia r1!, {r2, r3, r4, r5, r6, r7}\n\t"                                                                      \
        "ldr r0, [sp, #" BT_AT_X "]\n\t"                                                                               \
        "ldr.w pc, [sp, #0]\n"                                                                                         \
        "2:\n\t" BT_SIX_SINGLE "ldr.w pc, [sp, #4]\n"                                                                  \
        "3:\n\t" BT_SIX_TEN                                                                                            \
        "ldr.w pc, [sp, #16]\n"                                                                                        \
        "4:\n\t"                                                                                                       \
        "ldr.w r8, [sp, #" BT_AT_BORDER "]\n\t"                                                                        \
        "cmp r0, r8\n\t"                                                                                               \
        "bne.w 3b\n\t"                                                                                                 \
        "strd r4, r7, [sp, #" BT_AT_APART "]\n\t"                                                                      \
        "ldmia r1!, {r4, r7}\n\t"                                                                                      \
        "ldr.w pc, [sp, #8]\n"                                                                                         \
        "5:\n\t" BT_SIX_SINGLE "ldr.w pc, [sp, #12]\n"                                                                 \
        "6:\n\t" BT_SIX_TEN                                                                                            \
        "ldr.w pc, [sp, #20]\n"                                                                                        \
        "7:\n\t"                                                                                                       \
        "ldr.w r8, [sp, #" BT_AT_X_END "]\n\t"                                                                         \
        "cmp r0, r8\n\t"                                                                                               \
        "bne.w 6b\n\t"                                                                                                 \
        "ldmia r1!, {r8, r9, r10, r11, r12, lr}\n\t"                                                                   \
        "smmulr r2, r2, r8\n\t"                                                                                        \
        "smmulr r3, r3, r9\n\t"                                                                                        \
        "smmulr r4, r4, r10\n\t"                                                                                       \
        "smmulr r5, r5, r11\n\t"                                                                                       \
        "smmulr r6, r6, r12\n\t"                                                                                       \
        "smmulr r7, r7, lr\n\t"                                                                                        \
        "ldrd r8, r9, [sp, #" BT_AT_APART "]\n\t"                                                                      \
        "smmulr r8, r8, r10\n\t"                                                                                       \
        "smmulr r9, r9, lr\n\t"                                                                                        \
        "ldr r10, [sp, #" BT_AT_MIDDLE "]\n\t" /**/                                                                    \
        BT_SIGMOID("r2") BT_SIGMOID("r3") BT_SIGMOID("r5") BT_SIGMOID("r6")                                            \
        "ldrd r0, r12, [sp, #" BT_AT_H "]\n\t"                                                                         \
        "ldrd r11, lr, [sp, #" BT_AT_BELOW "]\n\t" /**/                                                                \
        BT_GRU_UNIT("r2", "r4", "r8") BT_GRU_UNIT("r5", "r7", "r9")                                                    \
        "add r4, r11, r4, lsl #1\n\t"                                                                                  \
        "add r7, r11, r7, lsl #1\n\t"                                                                                  \
        "pkhtb r4, r7, r4, asr #16\n\t"                                                                                \
        "ldr r2, [r0]\n\t"                                                                                             \
        "qsub16 r2, r2, r4\n\t"                                                                                        \
        "smlatb r3, r3, r2, lr\n\t"                                                                                    \
        "smlatt r6, r6, r2, lr\n\t"                                                                                    \
        "lsl r6, r6, #3\n\t"                                                                                           \
        "pkhtb r3, r6, r3, asr #13\n\t"                                                                                \
        "sadd16 r4, r4, r3\n\t"                                                                                        \
        "str r4, [r0], #4\n\t"                                                                                         \
        "ldrd r2, r3, [sp, #" BT_AT_MULTIPLIER "]\n\t" give BT_NEXT("r0", "r12") BT_STEP_ENDS

#define BT_RNN_UNIT(v, give)                                                                                           \
    "sub " v ", " v ", #0x10000000\n\t"                                                                                \
    "sub " v ", " v ", #0x4000\n\t"                                                                                    \
    "asr " v ", " v ", #15\n\t"                                                                                        \
    "strh " v ", [r8], #2\n\t" give(v, "r9")

#define BT_RNN_STEP(give)                                                                                              \
    BT_STEP_BEGINS BT_FOUR_ENTRIES                                                                                     \
        "1:\n\t" BT_FOUR_ROWS                                                                                          \
        "ldr r10, [sp, #" BT_AT_MIDDLE "]\n\t" /**/                                                                    \
        BT_SIGMOID("r2") BT_SIGMOID("r3") BT_SIGMOID("r4") BT_SIGMOID("r5")                                            \
        "ldrd r8, r9, [sp, #" BT_AT_H "]\n\t"                                                                          \
        "ldrd r11, r12, [sp, #" BT_AT_MULTIPLIER "]\n\t" /**/                                                          \
        BT_RNN_UNIT("r2", give) BT_RNN_UNIT("r3", give) BT_RNN_UNIT("r4", give) BT_RNN_UNIT("r5", give)                \
        BT_NEXT("r8", "r9") BT_STEP_ENDS

/* All units of a step, by this assembler. */
#define BT_STEP(name, assembler)                                                                                       \
    BT_SHARED void name(const bt_step *step)                                                                           \
    {                                                                                                                  \
        register const bt_step *r0 __asm__("r0") = step;                                                               \
        __asm__ volatile(assembler                                                                                     \
                         : "+&r"(r0)                                                                                   \
                         :                                                                                             \
                         : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory"); \
    }

BT_STEP(bt_lstm_step, BT_LSTM_STEP(BT_GIVE8))
BT_STEP(bt_lstm16_step, BT_LSTM_STEP(BT_GIVE16))
BT_STEP(bt_gru_step, BT_GRU_STEP(BT_GIVE8_TWO))
BT_STEP(bt_gru16_step, BT_GRU_STEP(BT_GIVE16_TWO))
BT_STEP(bt_rnn_step, BT_RNN_STEP(BT_GIVE8))
BT_STEP(bt_rnn16_step, BT_RNN_STEP(BT_GIVE16))

/* Words that `count` bytes take as pairs of halfwords: those of each four are 0 and 2, 1 and 3. */
BT_INLINE int32_t bt_words_of_bytes(int32_t count)
{
    return 2 * (count >> 2) + ((count & 3) > 1 ? 2 : count & 3);
}

/* `words` of them, of aligned memory. */
BT_INLINE void bt_copy_words(int32_t *to, const int8_t *from, int32_t words)
{
    int32_t fours = words >> 2;
    for (int32_t rest = words & 3; rest > 0; rest--, from += 4)
        *to++ = bt_load4(from);
    if (fours)
        __asm__ volatile("1:\n\t"
                         "ldmia %[from]!, {r2, r3, r12, lr}\n\t"
                         "stmia %[to]!, {r2, r3, r12, lr}\n\t"
                         "subs %[fours], %[fours], #1\n\t"
                         "bne 1b"
                         : [from] "+&r"(from), [to] "+&r"(to), [fours] "+&r"(fours)
                         :
                         : "r2", "r3", "r12", "lr", "cc", "memory");
}

/* `count` bytes as pairs of halfwords. Reads up to three bytes after them, and writes up to a word after theirs. */
BT_INLINE void bt_widen(int32_t *to, const int8_t *from, int32_t count)
{
    int32_t eights = ((count + 3) >> 2) >> 1;
    if (((count + 3) >> 2) & 1) {
        const int32_t four = bt_load4(from);
        from += 4;
        *to++ = bt_even_bytes(four);
        *to++ = bt_odd_bytes(four);
    }
    if (eights)
        __asm__ volatile("1:\n\t"
                         "ldr r3, [%[from]], #4\n\t"
                         "ldr lr, [%[from]], #4\n\t"
                         "sxtb16 r2, r3\n\t"
                         "sxtb16 r3, r3, ror #8\n\t"
                         "sxtb16 r12, lr\n\t"
                         "sxtb16 lr, lr, ror #8\n\t"
                         "stmia %[to]!, {r2, r3, r12, lr}\n\t"
                         "subs %[eights], %[eights], #1\n\t"
                         "bne 1b"
                         : [from] "+&r"(from), [to] "+&r"(to), [eights] "+&r"(eights)
                         :
                         : "r2", "r3", "r12", "lr", "cc", "memory");
}

/* Reads up to a halfword after them. */
BT_INLINE void bt_copy_halves(int32_t *to, const int16_t *from, int32_t count)
{
    const int8_t *bytes = (const int8_t *)from;
    if (count % 2 == 0) { /* then they begin at a word, as tensors do */
        bt_copy_words(to, bytes, count >> 1);
        return;
    }
    for (; count > 0; count -= 2, bytes += 4)
        *to++ = bt_load4(bytes);
}

/* The layout of unrolled code for words: up to most - 1 of `single` bytes each, a jump, then `turn` blocks of `block`
 * bytes for `most` words each. */
typedef struct {
    int32_t most;
    int32_t single;
    int32_t turn;
    int32_t block;
} bt_unrolled;

/* How many bytes after the first single word it begins for this many words, and their first whole block; plus one, for
 * Thumb. The last turn is a whole one, so the first has what is left. */
BT_INLINE void bt_entries(bt_unrolled code, int32_t words, int32_t *single, int32_t *block)
{
    const int32_t singles = words % code.most, blocks = words / code.most;
    const int32_t first = blocks ? (blocks - 1) % code.turn + 1 : 0;
    *block = (code.most - 1) * code.single + 4 + (code.turn - first) * code.block + 1;
    *single = singles ? (code.most - 1 - singles) * code.single + 1 : *block;
}

/* A layer over all times; only lstm has c. scratch: input and hidden state as halfwords */
BT_INLINE void bt_units(bt_kind kind, int32_t wide, const bt_qrecurrent *p, const void *x, const int32_t *weights,
                        const int32_t *sigmoid, void *y, int16_t *h, int16_t *c, int32_t *scratch,
                        void (*run)(const bt_step *))
{
    const int32_t n = p->hidden, words = wide ? (p->in + 1) >> 1 : bt_words_of_bytes(p->in), words_hh = (n + 1) >> 1;
    int32_t *hidden = scratch + words;
    bt_step step = { .weights = weights,
                     .x = scratch,
                     .x_end = hidden + words_hh,
                     .border = hidden,
                     .middle = sigmoid + 128,
                     .multiplier = p->multiplier,
                     .zero = p->zero,
                     .y_shift = p->y_shift };
    if (kind == BT_QGRU) {
        step.zero = wide ? p->zero : p->zero * 65536 + 32768;
        step.below = -(INT32_C(1) << 29) - (INT32_C(1) << 15);
        step.half = INT32_C(1) << 12;
        const bt_unrolled six = { 2, 36, 10, 64 };
        bt_entries(six, words, &step.single, &step.block);
        bt_entries(six, words_hh, &step.single_hh, &step.block_hh);
        step.exit = words < 22 ? BT_SKIPPED + 1 : 1;
        step.exit_hh = words_hh < 22 ? BT_SKIPPED + 1 : 1;
    } else {
        const bt_unrolled four = { 4, 24, 4, 84 };
        bt_entries(four, words + words_hh, &step.single, &step.block);
    }
    for (int32_t b = 0; b < p->batch; b++, h += n, c += kind == BT_QLSTM ? n : 0) {
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i), from = b * p->x_batch + t * p->x_time;
            const int32_t to = b * p->y_batch + t * p->y_time;
            if (wide)
                bt_copy_halves(scratch, (const int16_t *)x + from, p->in);
            else
                bt_widen(scratch, (const int8_t *)x + from, p->in);
            bt_copy_halves(hidden, h, n);
            step.h = h;
            step.h_end = h + n;
            step.c = c;
            step.y = wide ? (void *)((int16_t *)y + to) : (int8_t *)y + to;
            run(&step);
        }
    }
}

/* The kernels of an operator with one state, whose input is of type T, of int16 if that is wide. */
#define BT_DSP_ONE_STATE(name, kind, T, wide, step)                                                                        \
    BT_SHARED void bt_##name##_units(const bt_qrecurrent *p, const T *x, const int32_t *weights,                       \
                                     const int32_t *sigmoid, T *y, int16_t *h, void *scratch)                          \
    {                                                                                                                  \
        bt_units(kind, wide, p, x, weights, sigmoid, y, h, h, (int32_t *)scratch, step);                               \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_dsp(const bt_qrecurrent *p, const T *x, const int16_t *h0, const int32_t *weights,      \
                                   const int32_t *sigmoid, T *y, int16_t *h, void *scratch)                            \
    {                                                                                                                  \
        bt_begin(h0, h, p->batch * p->hidden);                                                                         \
        bt_##name##_units(p, x, weights, sigmoid, y, h, scratch);                                                      \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_zero_dsp(const bt_qrecurrent *p, const T *x, const int32_t *weights,                    \
                                        const int32_t *sigmoid, T *y, int16_t *h, void *scratch)                       \
    {                                                                                                                  \
        bt_begin(NULL, h, p->batch * p->hidden);                                                                       \
        bt_##name##_units(p, x, weights, sigmoid, y, h, scratch);                                                      \
    }
#define BT_DSP_TWO_STATES(name, T, wide, step)                                                                             \
    BT_SHARED void bt_##name##_units(const bt_qrecurrent *p, const T *x, const int32_t *weights,                       \
                                     const int32_t *sigmoid, T *y, int16_t *h, int16_t *c, void *scratch)              \
    {                                                                                                                  \
        bt_units(BT_QLSTM, wide, p, x, weights, sigmoid, y, h, c, (int32_t *)scratch, step);                           \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_dsp(const bt_qrecurrent *p, const T *x, const int16_t *h0, const int16_t *c0,           \
                                   const int32_t *weights, const int32_t *sigmoid, T *y, int16_t *h, int16_t *c,       \
                                   void *scratch)                                                                      \
    {                                                                                                                  \
        bt_begin(h0, h, p->batch * p->hidden);                                                                         \
        bt_begin(c0, c, p->batch * p->hidden);                                                                         \
        bt_##name##_units(p, x, weights, sigmoid, y, h, c, scratch);                                                   \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_zero_dsp(const bt_qrecurrent *p, const T *x, const int32_t *weights,                    \
                                        const int32_t *sigmoid, T *y, int16_t *h, int16_t *c, void *scratch)           \
    {                                                                                                                  \
        bt_begin(NULL, h, p->batch * p->hidden);                                                                       \
        bt_begin(NULL, c, p->batch * p->hidden);                                                                       \
        bt_##name##_units(p, x, weights, sigmoid, y, h, c, scratch);                                                   \
    }

BT_DSP_TWO_STATES(qlstm, int8_t, 0, bt_lstm_step)
BT_DSP_TWO_STATES(qlstm16, int16_t, 1, bt_lstm16_step)
BT_DSP_ONE_STATE(qgru, BT_QGRU, int8_t, 0, bt_gru_step)
BT_DSP_ONE_STATE(qgru16, BT_QGRU, int16_t, 1, bt_gru16_step)
BT_DSP_ONE_STATE(qrnn, BT_QRNN, int8_t, 0, bt_rnn_step)
BT_DSP_ONE_STATE(qrnn16, BT_QRNN, int16_t, 1, bt_rnn16_step)
