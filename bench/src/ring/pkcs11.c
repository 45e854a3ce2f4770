/* HMAC-SHA-256 of 64 bytes through a PKCS#11 module: prints calls a second.
   Arguments: the module, the slot's token label, its PIN, seconds. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <p11-kit-1/p11-kit/pkcs11.h>

#define TEXT 64

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

static CK_SLOT_ID slot_of(CK_FUNCTION_LIST *module, const char *label)
{
    CK_SLOT_ID slots[64];
    CK_ULONG count = 64;
    check(module->C_GetSlotList(CK_TRUE, slots, &count), "C_GetSlotList");
    for (CK_ULONG index = 0; index < count; index++) {
        CK_TOKEN_INFO token;
        check(module->C_GetTokenInfo(slots[index], &token), "C_GetTokenInfo");
        if (memcmp(token.label, label, strlen(label)) == 0)
            return slots[index];
    }
    fprintf(stderr, "there is no token %s\n", label);
    exit(1);
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
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
    CK_SLOT_ID slot = slot_of(module, arguments[2]);
    CK_FLAGS flags = CKF_SERIAL_SESSION | CKF_RW_SESSION;
    check(module->C_OpenSession(slot, flags, NULL, NULL, &session), "C_OpenSession");
    CK_UTF8CHAR *pin = (CK_UTF8CHAR *)arguments[3];
    check(module->C_Login(session, CKU_USER, pin, strlen(arguments[3])), "C_Login");

    CK_OBJECT_CLASS class = CKO_SECRET_KEY;
    CK_KEY_TYPE type = CKK_GENERIC_SECRET;
    CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
    CK_BYTE secret[32] = { 7 };
    CK_ATTRIBUTE template[] = {
        { CKA_CLASS, &class, sizeof class },  { CKA_KEY_TYPE, &type, sizeof type },
        { CKA_TOKEN, &no, sizeof no },        { CKA_SIGN, &yes, sizeof yes },
        { CKA_VALUE, secret, sizeof secret },
    };
    CK_OBJECT_HANDLE key;
    check(module->C_CreateObject(session, template, 5, &key), "C_CreateObject");

    CK_MECHANISM hmac = { CKM_SHA256_HMAC, NULL, 0 };
    CK_BYTE text[TEXT] = { 1 }, mac[32];
    double begun = now(), until = begun + atof(arguments[4]);
    long done = 0;
    do {
        for (int turn = 0; turn < 64; turn++) {
            CK_ULONG length = sizeof mac;
            check(module->C_SignInit(session, &hmac, key), "C_SignInit");
            check(module->C_Sign(session, text, sizeof text, mac, &length), "C_Sign");
        }
        done += 64;
    } while (now() < until);
    printf("%f\n", done / (now() - begun));
    check(module->C_Finalize(NULL), "C_Finalize");
    return 0;
}
