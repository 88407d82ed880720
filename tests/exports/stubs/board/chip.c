/* newlib on a chip: Baretorch's start-up code, which lies in $STUB_CHIP, calls bt_serve when the console works. */
#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bt_runtime.h"

extern char bt_data_used[], bt_stack_limit[];
extern void __libc_init_array(void);
extern int main(void);

int _write(int file, const char *data, int count);
int _read(int file, char *data, int count);
int _close(int file);
int _fstat(int file, struct stat *about);
int _isatty(int file);
int _lseek(int file, int offset, int from);
int _getpid(void);
int _kill(int process, int number);
void *_sbrk(intptr_t more);
__attribute__((noreturn)) void _exit(int code);

void _init(void) {}
void _fini(void) {}

int _write(int file, const char *data, int count)
{
    (void)file;
    for (int i = 0; i < count; i++)
        bt_console_put((uint8_t)data[i]);
    return count;
}

void *_sbrk(intptr_t more)
{
    static char *end = bt_data_used;
    if (more > bt_stack_limit - end) {
        errno = ENOMEM;
        return (void *)-1;
    }
    end += more;
    return end - more;
}

int _read(int file, char *data, int count) { (void)file; (void)data; (void)count; return 0; }
int _close(int file) { (void)file; return 0; }
int _fstat(int file, struct stat *about) { (void)file; about->st_mode = S_IFCHR; return 0; }
int _isatty(int file) { (void)file; return 1; }
int _lseek(int file, int offset, int from) { (void)file; (void)offset; (void)from; return 0; }
int _getpid(void) { return 1; }
int _kill(int process, int number) { (void)process; (void)number; return -1; }

void _exit(int code)
{
    bt_print(code == 0 ? "END\n" : "FAILED\n");
    for (;;)
        (void)bt_console_get();
}

void bt_serve(void)
{
    __libc_init_array();
    _exit(main());
}
