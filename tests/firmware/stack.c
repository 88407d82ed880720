/* Functions whose stack can be told by hand. */
#include <stdint.h>

void bt_reset(void);
int big_leaf(int n);
int middle(int n);
int chain(int n);
int ping(int n);
int pong(int n);
int factorial(int n);
int through_pointer(int n);
void far_loop(volatile int *n);

extern int (*volatile bt_pointer)(int);
int (*volatile bt_pointer)(int);

__attribute__((section(".vectors"), used)) static void (*const vectors[2])(void) = {bt_reset, bt_reset};

__attribute__((noinline)) int big_leaf(int n)
{
    volatile uint8_t room[400];
    room[n] = 1;
    return room[n + 1];
}

__attribute__((noinline)) int middle(int n)
{
    volatile int kept = n;
    return big_leaf(n) + kept;
}

__attribute__((noinline)) int chain(int n)
{
    volatile int kept[4];
    kept[n] = n;
    return middle(n) + kept[n];
}

__attribute__((noinline)) int pong(int n)
{
    volatile int kept = n;
    return n == 0 ? kept : ping(n - 1) + kept;
}

__attribute__((noinline)) int ping(int n)
{
    volatile int kept = n;
    return pong(n) + kept;
}

__attribute__((noinline)) int factorial(int n)
{
    volatile int kept = n;
    return n < 2 ? 1 : factorial(n - 1) * kept;
}

__attribute__((noinline)) static int hidden(int n)
{
    volatile int kept = n;
    return n < 3 ? 7 : hidden(n - 2) + kept;
}

__attribute__((noinline)) int through_pointer(int n)
{
    return bt_pointer(n) + 1;
}

#define FOUR(x) x x x x
#define LONG FOUR(FOUR(FOUR(FOUR(FOUR("nop\n\t")))))

/* So long that Armv6-M goes back to its beginning with the instruction that calls. */
__attribute__((noinline)) void far_loop(volatile int *n)
{
    while (*n)
        __asm__ volatile(LONG);
}

__attribute__((used, section(".start"))) void bt_reset(void)
{
    volatile int n = 1;
    n = chain(n) + ping(n) + factorial(n) + hidden(n) + through_pointer(n);
    far_loop(&n);
    for (;;) {
    }
}
