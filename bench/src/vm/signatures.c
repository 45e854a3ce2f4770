/* ECDSA of a digest with a named key, through a PKCS#11 module, one after the other: prints signatures a second, those
   of the best of many short windows, since a neighbour of the guest disturbs most.
   Arguments: the module, the key's label, seconds.

   With "bridge", a socket's path and a device: hands the bytes of the first connection on to that virtio-serial port,
   and back. p11-kit's client speaks to sockets only. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <p11-kit-1/p11-kit/pkcs11.h>

/* In seconds, for every module. */
#define WINDOW 0.005

static void check(CK_RV result, const char *what)
{
    if (result != CKR_OK) {
        fprintf(stderr, "%s: 0x%lx\n", what, result);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static void copy(int from, int to)
{
    char buffer[4096];
    ssize_t length;
    while ((length = read(from, buffer, sizeof buffer)) > 0)
        for (ssize_t done = 0; done < length;)
            done += must(write(to, buffer + done, length - done), "write");
    exit(0);
}

static int bridge(const char *path, const char *device)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int port = must(open(device, O_RDWR), device);
    int listener = must(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    must(bind(listener, (struct sockaddr *)&address, sizeof address), path);
    must(listen(listener, 1), "listen");
    int client = must(accept(listener, NULL, NULL), "accept");
    /* A process for each way waits in one call. */
    if (must(fork(), "fork") == 0)
        copy(port, client);
    copy(client, port);
    return 0;
}

static CK_SLOT_ID slot_with_a_token(CK_FUNCTION_LIST *module)
{
    CK_SLOT_ID slots[64];
    CK_ULONG count = 64;
    check(module->C_GetSlotList(CK_TRUE, slots, &count), "C_GetSlotList");
    if (count == 0) {
        fprintf(stderr, "there is no token\n");
        exit(1);
    }
    return slots[0];
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    if (strcmp(arguments[1], "bridge") == 0)
        return bridge(arguments[2], arguments[3]);
    void *library = dlopen(arguments[1], RTLD_NOW);
    CK_RV (*list)(CK_FUNCTION_LIST **) = library ? dlsym(library, "C_GetFunctionList") : NULL;
    if (list == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    CK_FUNCTION_LIST *module;
    check(list(&module), "C_GetFunctionList");
    check(module->C_Initialize(NULL), "C_Initialize");
    CK_SESSION_HANDLE session;
    CK_SLOT_ID slot = slot_with_a_token(module);
    check(module->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session), "C_OpenSession");

    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_ATTRIBUTE template[] = {
        { CKA_CLASS, &class, sizeof class },
        { CKA_LABEL, arguments[2], strlen(arguments[2]) },
    };
    CK_OBJECT_HANDLE key;
    CK_ULONG found;
    check(module->C_FindObjectsInit(session, template, 2), "C_FindObjectsInit");
    check(module->C_FindObjects(session, &key, 1, &found), "C_FindObjects");
    check(module->C_FindObjectsFinal(session), "C_FindObjectsFinal");
    if (found == 0) {
        fprintf(stderr, "there is no key %s\n", arguments[2]);
        return 1;
    }

    CK_MECHANISM ecdsa = { CKM_ECDSA, NULL, 0 };
    CK_BYTE digest[32] = { 1 }, signature[64];
    double begun = now(), end = begun + atof(arguments[3]), best = 0;
    while (begun < end) {
        double passed;
        long done = 0;
        do {
            for (int turn = 0; turn < 4; turn++) {
                CK_ULONG length = sizeof signature;
                digest[0]++;
                check(module->C_SignInit(session, &ecdsa, key), "C_SignInit");
                check(module->C_Sign(session, digest, sizeof digest, signature, &length), "C_Sign");
            }
            done += 4;
            passed = now() - begun;
        } while (passed < WINDOW);
        if (done / passed > best)
            best = done / passed;
        begun = now();
    }
    printf("%f\n", best);
    check(module->C_Finalize(NULL), "C_Finalize");
    return 0;
}
