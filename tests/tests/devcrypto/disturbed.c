/* A program that is disturbed while it speaks /dev/crypto: by forks, by the end of threads, by signals, and by pointers to
 * nothing. With the kind of disturbance as its argument; it says what went wrong, or nothing. */
#include "device.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

static const uint8_t KEY[16] = "a key, 16 bytes";
static int fd;
static uint32_t ses;
static atomic_bool over;

/* AES-CBC of 16 zeros under that key, as the first request has said. */
static uint8_t wanted[16];

static int works_on(int which, uint32_t session) {
    uint8_t text[16] = { 0 }, out[16] = { 0 }, iv[16] = { 0 };
    if (crypt_one(which, session, ENCRYPT, text, 16, out, NULL, iv) != 0) return 0;
    return memcmp(out, wanted, 16) == 0;
}

static void set_up(void) {
    uint8_t text[16] = { 0 }, iv[16] = { 0 };
    fd = device();
    ses = begin(fd, AES_CBC, KEY, 16, 0, NULL, 0);
    CHECK(crypt_one(fd, ses, ENCRYPT, text, 16, wanted, NULL, iv) == 0);
}

/* --- what other threads do --- */

static void *copies(void *argument) {
    (void)argument;
    while (!over) {
        int copy = dup(fd);
        CHECK(copy >= 0 && close(copy) == 0);
        pthread_testcancel();
    }
    return NULL;
}

static void *opens(void *argument) {
    (void)argument;
    while (!over) {
        int other = open("/dev/crypto", O_RDWR | O_CLOEXEC);
        CHECK(other >= 0 && close(other) == 0);
        pthread_testcancel();
    }
    return NULL;
}

static void *sessions(void *argument) {
    (void)argument;
    while (!over) {
        uint32_t session = begin(fd, AES_CBC, KEY, 16, 0, NULL, 0);
        CHECK(works_on(fd, session) && ioctl(fd, CIOCFSESSION, &session) == 0);
        pthread_testcancel();
    }
    return NULL;
}

static void *requests(void *argument) {
    (void)argument;
    while (!over) {
        CHECK(works_on(fd, ses));
        pthread_testcancel();
    }
    return NULL;
}

static void *large(void *argument) {
    static uint8_t text[4 << 20];
    uint8_t iv[16] = { 0 };
    (void)argument;
    while (!over) {
        CHECK(crypt_one(fd, ses, ENCRYPT, text, sizeof text, text, NULL, iv) == 0);
        pthread_testcancel();
    }
    return NULL;
}

static void *(*const OTHERS[])(void *) = { copies, opens, sessions, requests, large };
enum { KINDS = sizeof OTHERS / sizeof *OTHERS };

/* A child has what its parent has, whatever other threads were at: also the message so far of a session. */
static void forks(void) {
    uint8_t first[32], digest[32], second[32];
    set_up();
    uint32_t sha = begin(fd, 0, NULL, 0, SHA256, NULL, 0);
    CHECK(crypt_flags(fd, sha, ENCRYPT, UPDATE | RESET, "ab", 2, NULL, NULL, NULL) == 0);
    CHECK(crypt_flags(fd, sha, ENCRYPT, UPDATE, "c", 1, NULL, NULL, NULL) == 0);
    for (int kind = 0; kind < KINDS - 1; kind++) {
        pthread_t thread;
        over = 0;
        CHECK(pthread_create(&thread, NULL, OTHERS[kind], NULL) == 0);
        for (int round = 0; round < 100; round++) {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0) {
                CHECK(works_on(fd, ses));
                CHECK(crypt_flags(fd, sha, ENCRYPT, FINAL, NULL, 0, NULL, first, NULL) == 0);
                CHECK(crypt_one(fd, sha, ENCRYPT, "abc", 3, NULL, second, NULL) == 0);
                CHECK(memcmp(first, second, 32) == 0);
                CHECK(close(fd) == 0);
                _exit(0);
            }
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
        }
        over = 1;
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(crypt_flags(fd, sha, ENCRYPT, FINAL, NULL, 0, NULL, digest, NULL) == 0);
    CHECK(crypt_one(fd, sha, ENCRYPT, "abc", 3, NULL, second, NULL) == 0);
    CHECK(memcmp(digest, second, 32) == 0);
    CHECK(close(fd) == 0);
}

/* A thread ends between its calls, not in them. */
static void cancels(void) {
    set_up();
    for (int kind = 0; kind < KINDS; kind++)
        for (int round = 0; round < 25; round++) {
            pthread_t thread;
            void *result;
            CHECK(pthread_create(&thread, NULL, OTHERS[kind], NULL) == 0);
            for (int pause = 0; pause < round; pause++) CHECK(works_on(fd, ses));
            CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
            CHECK(result == PTHREAD_CANCELED);
            CHECK(works_on(fd, ses));
        }
    CHECK(close(fd) == 0);
}

/* --- signals --- */

static atomic_int handled;
static sigjmp_buf back;

static void use(int signal) {
    (void)signal;
    int before = errno;
    CHECK(works_on(fd, ses));
    handled++;
    errno = before;
}

static void reopen(int signal) {
    (void)signal;
    int before = errno, other = open("/dev/crypto", O_RDWR);
    CHECK(other >= 0 && close(other) == 0);
    handled++;
    errno = before;
}

static void leave(int signal) {
    (void)signal;
    handled++;
    siglongjmp(back, 1);
}

static void every(int microseconds, void (*handler)(int)) {
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct itimerval when = { { 0, microseconds }, { 0, microseconds } };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &when, NULL) == 0);
}

static void signals(void) {
    set_up();
    handled = 0;
    every(700, use);
    while (handled < 100) CHECK(works_on(fd, ses));
    handled = 0;
    every(700, reopen);
    while (handled < 100) {
        int other = open("/dev/crypto", O_RDWR);
        CHECK(other >= 0 && close(other) == 0);
    }
    every(0, SIG_IGN);
    /* It never comes back to what it has interrupted. */
    handled = 0;
    every(700, leave);
    while (handled < 100) {
        sigsetjmp(back, 1);
        while (handled < 100) CHECK(works_on(fd, ses));
    }
    every(0, SIG_IGN);
    CHECK(works_on(fd, ses) && ioctl(fd, CIOCFSESSION, &ses) == 0 && close(fd) == 0);
}

/* --- pointers --- */

static void pointers(void) {
    /* A page, one that is only read, and none behind. */
    uint8_t *page = mmap(NULL, 4096 * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + 8192, 4096, PROT_NONE) == 0);
    uint8_t *reads = page + 4096, *none = page + 8192, *half = none - 16;
    memset(reads, 'a', 4096);
    memcpy(reads, "/dev/null", 10);
    CHECK(mprotect(reads, 4096, PROT_READ) == 0);
    const char *paths[] = { NULL, (char *)0xdead000, (char *)none, (char *)none - 3, (char *)-1 };
    for (unsigned at = 0; at < sizeof paths / sizeof *paths; at++) {
        const char *path = paths[at];
        /* The compiler knows that no path is null. */
        __asm__("" : "+r"(path));
        REFUSED(open(path, O_RDONLY), EFAULT);
        REFUSED(open(path, O_CREAT | O_RDWR, 0600), EFAULT);
        REFUSED(openat(AT_FDCWD, path, O_RDONLY), EFAULT);
        REFUSED(open64(path, O_RDONLY), EFAULT);
    }
    int null = open((char *)reads, O_RDONLY);
    CHECK(null >= 0 && close(null) == 0);

    set_up();
    uint32_t sha = begin(fd, 0, NULL, 0, SHA256, NULL, 0), seal = begin(fd, AES_GCM, KEY, 16, 0, NULL, 0);
    uint8_t text[32] = { 0 }, out[64], iv[16] = { 0 };
    void *wild[] = { NULL, (void *)0xdead000, none, half + 1, (void *)-1, (void *)(1ul << 63) };
    for (unsigned at = 0; at < sizeof wild / sizeof *wild; at++) {
        void *it = wild[at];
        REFUSED(refuse(fd, AES_CBC, it, 16, 0, NULL, 0), EFAULT);
        REFUSED(refuse(fd, 0, NULL, 0, SHA256_HMAC, it, 16), EFAULT);
        REFUSED(crypt_one(fd, ses, ENCRYPT, it, 32, out, NULL, iv), EFAULT);
        REFUSED(crypt_one(fd, ses, ENCRYPT, text, 32, it, NULL, iv), EFAULT);
        if (it != NULL) REFUSED(crypt_one(fd, ses, ENCRYPT, text, 32, out, NULL, it), EFAULT);
        REFUSED(crypt_one(fd, sha, ENCRYPT, it, 32, NULL, out, NULL), EFAULT);
        REFUSED(crypt_one(fd, sha, ENCRYPT, text, 32, NULL, it, NULL), EFAULT);
        struct crypt_auth_op op = { .ses = seal, .op = ENCRYPT, .len = 32, .src = text, .dst = it, .iv = iv };
        REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EFAULT);
        op.dst = out, op.src = it;
        REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EFAULT);
        op.src = text, op.auth_src = it, op.auth_len = 20;
        REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EFAULT);
        REFUSED(ioctl(fd, CRIOGET, it == half + 1 ? none : it), EFAULT);
        REFUSED(ioctl(fd, CIOCGSESSION, it), EFAULT);
        REFUSED(ioctl(fd, CIOCCRYPT, it), EFAULT);
        REFUSED(ioctl(fd, CIOCAUTHCRYPT, it), EFAULT);
        REFUSED(ioctl(fd, CIOCGSESSINFO, it), EFAULT);
        REFUSED(ioctl(fd, CIOCCPHASH, it == half + 1 ? none : it), EFAULT);
        CHECK(works_on(fd, ses));
    }
    /* Room that is only to be read. */
    REFUSED(crypt_one(fd, ses, ENCRYPT, text, 16, reads, NULL, iv), EFAULT);
    REFUSED(crypt_one(fd, sha, ENCRYPT, text, 16, NULL, reads, NULL), EFAULT);
    REFUSED(ioctl(fd, CRIOGET, reads), EFAULT);
    struct session_op *op = (struct session_op *)page;
    *op = (struct session_op){ AES_CBC, 0, 16, KEY, 0, NULL, 0 };
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    /* A session whose number the program does not hear is none: more than a device may have. */
    for (int round = 0; round < 5000; round++) REFUSED(ioctl(fd, CIOCGSESSION, op), EFAULT);
    CHECK(works_on(fd, ses) && close(fd) == 0);
}

/* --- another root --- */

/* Whether this process may keep the socket's folder: as root that no filter of system calls holds. */
static int keeps_folder(void) {
    char line[256];
    unsigned long long effective = 0;
    int filter = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "CapEff: %llx", &effective);
        sscanf(line, "Seccomp: %d", &filter);
    }
    fclose(status);
    return filter == 0 && (effective >> 21 & 1) && (effective >> 18 & 1);
}

static void chroots(void) {
    if (!keeps_folder()) return;
    set_up();
    CHECK(mkdir("empty", 0755) == 0 && chroot("empty") == 0 && chdir("/") == 0);
    CHECK(works_on(fd, ses));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(works_on(fd, ses));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* So may one that is opened there. */
    int other = device();
    CHECK(works_on(other, begin(other, AES_CBC, KEY, 16, 0, NULL, 0)));
    CHECK(close(other) == 0 && close(fd) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *what = arguments[1];
    if (strcmp(what, "forks") == 0) forks();
    else if (strcmp(what, "cancels") == 0) cancels();
    else if (strcmp(what, "signals") == 0) signals();
    else if (strcmp(what, "pointers") == 0) pointers();
    else if (strcmp(what, "chroots") == 0) chroots();
    else CHECK(!"known");
    return 0;
}
