/* A program of a module's: it takes what no tool does, such as forks and threads.
   Usage: harness MODULE WHAT; it prints what went wrong, and exits with 0 if nothing did. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <p11-kit/pkcs11.h>

#define MUST(call, answer)                                                                       \
    do {                                                                                         \
        CK_RV rv_ = (call);                                                                      \
        if (rv_ != (answer)) {                                                                   \
            printf("line %d: %s gave %#lx and not %#lx\n", __LINE__, #call, rv_, (CK_RV)answer);   \
            fflush(stdout);                                                                      \
            _exit(1);                                                                            \
        }                                                                                        \
    } while (0)
#define CHECK(is)                                                                                \
    do {                                                                                         \
        if (!(is)) {                                                                             \
            printf("line %d: not %s\n", __LINE__, #is);                                          \
            fflush(stdout);                                                                      \
            _exit(1);                                                                            \
        }                                                                                        \
    } while (0)

static void *library;
static CK_FUNCTION_LIST *p11;
static const CK_SLOT_ID SLOT = 1;

static void load(const char *path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList");
    CHECK(get);
    MUST(get(&p11), CKR_OK);
}

static CK_SESSION_HANDLE session(void) {
    CK_SESSION_HANDLE handle;
    MUST(p11->C_OpenSession(SLOT, CKF_SERIAL_SESSION, NULL, NULL, &handle), CKR_OK);
    return handle;
}

static CK_OBJECT_HANDLE find(CK_SESSION_HANDLE in, CK_OBJECT_CLASS class, const char *label) {
    CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class},
                               {CKA_LABEL, (void *)label, strlen(label)}};
    CK_OBJECT_HANDLE found[2];
    CK_ULONG count;
    MUST(p11->C_FindObjectsInit(in, template, 2), CKR_OK);
    MUST(p11->C_FindObjects(in, found, 2, &count), CKR_OK);
    CHECK(count == 1);
    MUST(p11->C_FindObjectsFinal(in), CKR_OK);
    return found[0];
}

static CK_MECHANISM by_sha256 = {CKM_SHA256_RSA_PKCS, NULL, 0};
static CK_MECHANISM by_ecdsa = {CKM_ECDSA_SHA256, NULL, 0};
static CK_MECHANISM by_digest = {CKM_ECDSA, NULL, 0};

/* Signs, and has the token verify it. */
static void sign(CK_SESSION_HANDLE in, CK_MECHANISM *how, CK_OBJECT_HANDLE key, CK_OBJECT_HANDLE public) {
    unsigned char text[40] = {0}, signature[600];
    CK_ULONG length = sizeof signature;
    snprintf((char *)text, sizeof text, "%d %lx %p", getpid(), (unsigned long)pthread_self(), (void *)&length);
    MUST(p11->C_SignInit(in, how, key), CKR_OK);
    MUST(p11->C_Sign(in, text, sizeof text, signature, &length), CKR_OK);
    MUST(p11->C_VerifyInit(in, how, public), CKR_OK);
    MUST(p11->C_Verify(in, text, sizeof text, signature, length), CKR_OK);
    text[0] ^= 1;
    MUST(p11->C_VerifyInit(in, how, public), CKR_OK);
    MUST(p11->C_Verify(in, text, sizeof text, signature, length), CKR_SIGNATURE_INVALID);
}

static CK_OBJECT_HANDLE key, public;

static void *signer(void *rounds) {
    CK_SESSION_HANDLE in = session();
    for (long round = 0; round < (long)rounds; round++) sign(in, &by_ecdsa, key, public);
    MUST(p11->C_CloseSession(in), CKR_OK);
    return NULL;
}

static void *endless(void *unused) {
    signer((void *)1000000000L);
    return unused;
}

/* Sixteen children and the parent sign at once, while threads of the parent sign too. Every second child begins
   anew, the others go on with what they inherited. */
static void child(CK_SESSION_HANDLE in, int anew, int depth) {
    if (anew) {
        MUST(p11->C_Initialize(NULL), CKR_OK);
        MUST(p11->C_SignInit(in, &by_ecdsa, key), CKR_SESSION_HANDLE_INVALID);
        in = session();
        CHECK(find(in, CKO_PRIVATE_KEY, "ec") == key);
    }
    for (int round = 0; round < 5; round++) sign(in, &by_ecdsa, key, public);
    if (depth) {
        pid_t grandchild = fork();
        if (!grandchild) {
            child(in, !anew, depth - 1);
            _exit(0);
        }
        int status;
        waitpid(grandchild, &status, 0);
        CHECK(status == 0);
    }
    if (anew) MUST(p11->C_Finalize(NULL), CKR_OK);
}

/* Parent and child both end a signature that the parent has begun. */
static void begun(void) {
    CK_SESSION_HANDLE in = session();
    unsigned char text[64] = {7}, signature[64];
    CK_ULONG length = sizeof signature;
    MUST(p11->C_SignInit(in, &by_ecdsa, key), CKR_OK);
    MUST(p11->C_SignUpdate(in, text, 32), CKR_OK);
    pid_t child = fork();
    text[32] = !child;
    MUST(p11->C_SignUpdate(in, text + 32, 32), CKR_OK);
    MUST(p11->C_SignFinal(in, signature, &length), CKR_OK);
    MUST(p11->C_VerifyInit(in, &by_ecdsa, public), CKR_OK);
    MUST(p11->C_Verify(in, text, 64, signature, length), CKR_OK);
    if (!child) _exit(0);
    int status;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

static void forks(void) {
    CK_SESSION_HANDLE in = session();
    begun();
    pthread_t threads[4];
    pid_t children[16];
    sign(in, &by_ecdsa, key, public);
    for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, signer, (void *)200L);
    for (int at = 0; at < 16; at++) {
        children[at] = fork();
        if (!children[at]) {
            alarm(60);
            child(in, at % 2, 2);
            _exit(0);
        }
        sign(in, &by_ecdsa, key, public);
    }
    for (int at = 0; at < 16; at++) {
        int status;
        waitpid(children[at], &status, 0);
        CHECK(status == 0);
    }
    for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
    sign(in, &by_ecdsa, key, public);
}

static void *thousandth(void *rounds) {
    CK_SESSION_HANDLE all[32];
    for (int at = 0; at < 32; at++) all[at] = session();
    for (int at = 0; at < 32; at++) sign(all[at], &by_ecdsa, key, public);
    for (int at = 0; at < 32; at++) MUST(p11->C_CloseSession(all[at]), CKR_OK);
    MUST(p11->C_CloseSession(all[0]), CKR_SESSION_HANDLE_INVALID);
    return rounds;
}

static void threads(void) {
    CK_SESSION_HANDLE open[1000];
    pthread_t threads[32];
    for (int at = 0; at < 1000; at++) open[at] = session();
    for (int at = 0; at < 32; at++) pthread_create(&threads[at], NULL, thousandth, NULL);
    for (int at = 0; at < 1000; at += 10) sign(open[at], &by_ecdsa, key, public);
    for (int at = 0; at < 32; at++) pthread_join(threads[at], NULL);
    CK_TOKEN_INFO info;
    MUST(p11->C_GetTokenInfo(SLOT, &info), CKR_OK);
    CHECK(info.ulSessionCount == 1000);
    MUST(p11->C_CloseAllSessions(SLOT), CKR_OK);
    MUST(p11->C_SignInit(open[5], &by_ecdsa, key), CKR_SESSION_HANDLE_INVALID);
}

/* The test that starts this program kills the daemon, and starts it again, when it reads a line. */
static void wait_for(const char *line) {
    char answer[16];
    puts(line);
    fflush(stdout);
    CHECK(fgets(answer, sizeof answer, stdin));
}

static void death(void) {
    CK_SESSION_HANDLE in = session();
    unsigned char digest[32] = {1}, signature[64];
    sign(in, &by_ecdsa, key, public);
    for (int round = 0; round < 2; round++) {
        wait_for("kill it");
        CK_ULONG length = sizeof signature;
        MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
        MUST(p11->C_Sign(in, digest, 32, signature, &length), CKR_DEVICE_ERROR);
        MUST(p11->C_FindObjectsInit(in, NULL, 0), CKR_DEVICE_ERROR);
        CK_TOKEN_INFO info;
        MUST(p11->C_GetTokenInfo(SLOT, &info), CKR_TOKEN_NOT_PRESENT);
        CK_ULONG slots = 0;
        MUST(p11->C_GetSlotList(1, NULL, &slots), CKR_OK);
        CHECK(slots == 0);
        wait_for("start it");
        sign(in, &by_ecdsa, key, public);
    }
}

/* A daemon that ends in the middle of signatures: each is right, or an error. */
static void middle(void) {
    CK_SESSION_HANDLE in = session();
    char answer[16];
    puts("kill it");
    fflush(stdout);
    for (;;) {
        unsigned char digest[32] = {1}, signature[64];
        CK_ULONG length = sizeof signature;
        MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
        CK_RV rv = p11->C_Sign(in, digest, 32, signature, &length);
        if (rv == CKR_DEVICE_ERROR) break;
        MUST(rv, CKR_OK);
    }
    CHECK(fgets(answer, sizeof answer, stdin));
    wait_for("start it");
    sign(in, &by_ecdsa, key, public);
}

static void answers(void) {
    CK_SESSION_HANDLE in = session(), other = session();
    CK_OBJECT_HANDLE rsa = find(in, CKO_PRIVATE_KEY, "rsa"), rsa_public = find(in, CKO_PUBLIC_KEY, "rsa");
    unsigned char text[32] = {7}, out[600];
    CK_ULONG length;
    MUST(p11->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    MUST(p11->C_GetInfo(NULL), CKR_ARGUMENTS_BAD);
    MUST(p11->C_GetSlotInfo(7, NULL), CKR_SLOT_ID_INVALID);
    MUST(p11->C_OpenSession(SLOT, 0, NULL, NULL, &other), CKR_SESSION_PARALLEL_NOT_SUPPORTED);
    MUST(p11->C_OpenSession(SLOT, CKF_SERIAL_SESSION, NULL, NULL, NULL), CKR_ARGUMENTS_BAD);
    /* Any callback and PIN will do. */
    MUST(p11->C_OpenSession(SLOT, CKF_SERIAL_SESSION | CKF_RW_SESSION, &in, (CK_NOTIFY)(void *)death, &other), CKR_OK);
    MUST(p11->C_Login(other, CKU_USER, (unsigned char *)"1", 1), CKR_OK);
    MUST(p11->C_Login(other, CKU_USER, NULL, 0), CKR_USER_ALREADY_LOGGED_IN);
    MUST(p11->C_Logout(other), CKR_OK);
    MUST(p11->C_Logout(other), CKR_USER_NOT_LOGGED_IN);
    MUST(p11->C_Login(other, CKU_USER, NULL, 0), CKR_OK);
    MUST(p11->C_Logout(other), CKR_OK);
    /* Room for an answer. */
    MUST(p11->C_SignInit(in, &by_ecdsa, key), CKR_OK);
    MUST(p11->C_SignInit(in, &by_ecdsa, key), CKR_OPERATION_ACTIVE);
    MUST(p11->C_Sign(in, text, 32, NULL, &length), CKR_OK);
    CHECK(length == 64);
    length = 63;
    MUST(p11->C_Sign(in, text, 32, out, &length), CKR_BUFFER_TOO_SMALL);
    CHECK(length == 64);
    MUST(p11->C_Sign(in, text, 32, out, &length), CKR_OK);
    MUST(p11->C_Sign(in, text, 32, out, &length), CKR_OPERATION_NOT_INITIALIZED);
    MUST(p11->C_SignInit(in, &by_sha256, rsa), CKR_OK);
    MUST(p11->C_SignUpdate(in, text, 16), CKR_OK);
    MUST(p11->C_SignUpdate(in, text + 16, 16), CKR_OK);
    length = 1;
    MUST(p11->C_SignFinal(in, out, &length), CKR_BUFFER_TOO_SMALL);
    MUST(p11->C_SignFinal(in, out, &length), CKR_OK);
    MUST(p11->C_VerifyInit(in, &by_sha256, rsa_public), CKR_OK);
    MUST(p11->C_Verify(in, text, 32, out, length), CKR_OK);
    MUST(p11->C_VerifyInit(in, &by_sha256, rsa_public), CKR_OK);
    MUST(p11->C_Verify(in, text, 32, out, length - 1), CKR_SIGNATURE_LEN_RANGE);
    /* A failed operation is over. */
    MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
    length = sizeof out;
    MUST(p11->C_Sign(in, text, 3, out, &length), CKR_DATA_LEN_RANGE);
    MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
    MUST(p11->C_Sign(in, NULL, 32, out, &length), CKR_ARGUMENTS_BAD);
    MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
    MUST(p11->C_Sign(in, text, 32, out, NULL), CKR_ARGUMENTS_BAD);
    MUST(p11->C_SignInit(in, &by_digest, key), CKR_OK);
    MUST(p11->C_Sign(in, text, 32, out, &length), CKR_OK);
    /* Mechanisms and keys that do not go together. */
    CK_MECHANISM unknown = {CKM_AES_GCM, NULL, 0}, pss = {CKM_SHA256_RSA_PKCS_PSS, NULL, 0};
    MUST(p11->C_SignInit(in, &unknown, key), CKR_MECHANISM_INVALID);
    MUST(p11->C_SignInit(in, &by_ecdsa, rsa), CKR_KEY_TYPE_INCONSISTENT);
    MUST(p11->C_SignInit(in, &by_sha256, key), CKR_KEY_TYPE_INCONSISTENT);
    MUST(p11->C_SignInit(in, &pss, rsa), CKR_MECHANISM_PARAM_INVALID);
    CK_RSA_PKCS_PSS_PARAMS other_hash = {CKM_SHA_1, CKG_MGF1_SHA1, 20};
    pss.pParameter = &other_hash;
    pss.ulParameterLen = sizeof other_hash;
    MUST(p11->C_SignInit(in, &pss, rsa), CKR_MECHANISM_PARAM_INVALID);
    MUST(p11->C_SignInit(in, &by_sha256, rsa_public), CKR_KEY_FUNCTION_NOT_PERMITTED);
    MUST(p11->C_SignInit(in, &by_sha256, 99999), CKR_KEY_HANDLE_INVALID);
    MUST(p11->C_SignInit(in, &by_sha256, 0), CKR_KEY_HANDLE_INVALID);
    MUST(p11->C_SignInit(99999, &by_sha256, rsa), CKR_SESSION_HANDLE_INVALID);
    MUST(p11->C_SignInit(in, NULL, rsa), CKR_ARGUMENTS_BAD);
    MUST(p11->C_SignInit(in, &by_sha256, find(in, CKO_PRIVATE_KEY, "one")), CKR_OK);
    MUST(p11->C_SignInit(in, NULL, 0), CKR_OK);
    CK_MECHANISM by_sha512 = {CKM_SHA512_RSA_PKCS, NULL, 0}, given = {CKM_RSA_PKCS, NULL, 0};
    MUST(p11->C_SignInit(in, &by_sha512, find(in, CKO_PRIVATE_KEY, "one")), CKR_KEY_FUNCTION_NOT_PERMITTED);
    MUST(p11->C_SignInit(in, &given, find(in, CKO_PRIVATE_KEY, "one")), CKR_KEY_FUNCTION_NOT_PERMITTED);
    MUST(p11->C_DecryptInit(in, &given, find(in, CKO_PRIVATE_KEY, "one")), CKR_KEY_FUNCTION_NOT_PERMITTED);
    /* Attributes. */
    CK_BBOOL yes = 0;
    unsigned char small[3];
    CK_ATTRIBUTE asked[] = {{CKA_PRIVATE_EXPONENT, out, sizeof out}, {CKA_SENSITIVE, &yes, 1},
                            {CKA_MODULUS, small, sizeof small},      {CKA_ID, NULL, 0}};
    CHECK(p11->C_GetAttributeValue(in, rsa, asked, 4) != CKR_OK);
    CHECK(asked[0].ulValueLen == (CK_ULONG)-1 && yes == 1);
    CHECK(asked[2].ulValueLen == (CK_ULONG)-1 && asked[3].ulValueLen == 20);
    MUST(p11->C_GetAttributeValue(in, rsa, asked, 1), CKR_ATTRIBUTE_SENSITIVE);
    MUST(p11->C_GetAttributeValue(in, rsa, NULL, 1), CKR_ARGUMENTS_BAD);
    MUST(p11->C_GetAttributeValue(in, rsa, asked, (CK_ULONG)-1), CKR_ARGUMENTS_BAD);
    MUST(p11->C_GetAttributeValue(in, 12345, asked, 1), CKR_OBJECT_HANDLE_INVALID);
    MUST(p11->C_DestroyObject(in, rsa), CKR_ACTION_PROHIBITED);
    MUST(p11->C_GenerateKey(in, &given, NULL, 0, &rsa), CKR_FUNCTION_NOT_SUPPORTED);
    /* Decryption. */
    CK_RSA_PKCS_OAEP_PARAMS oaep_params = {CKM_SHA384, CKG_MGF1_SHA1, CKZ_DATA_SPECIFIED, "label", 5};
    CK_MECHANISM oaep = {CKM_RSA_PKCS_OAEP, &oaep_params, sizeof oaep_params};
    unsigned char sealed[600], opened[600];
    for (int round = 0; round < 2; round++) {
        CK_MECHANISM *how = round ? &oaep : &given;
        CK_ULONG sealed_length = sizeof sealed;
        MUST(p11->C_EncryptInit(in, how, rsa_public), CKR_OK);
        MUST(p11->C_Encrypt(in, text, 32, sealed, &sealed_length), CKR_OK);
        MUST(p11->C_DecryptInit(in, how, rsa), CKR_OK);
        MUST(p11->C_Decrypt(in, sealed, sealed_length, NULL, &length), CKR_OK);
        CHECK(length == sealed_length);
        length = 31;
        MUST(p11->C_Decrypt(in, sealed, sealed_length, opened, &length), CKR_BUFFER_TOO_SMALL);
        CHECK(length == 32);
        MUST(p11->C_Decrypt(in, sealed, sealed_length, opened, &length), CKR_OK);
        CHECK(length == 32 && memcmp(opened, text, 32) == 0);
        MUST(p11->C_DecryptInit(in, how, rsa), CKR_OK);
        MUST(p11->C_DecryptUpdate(in, sealed, sealed_length, opened, &length), CKR_OK);
        CHECK(length == 0);
        length = 1;
        MUST(p11->C_DecryptFinal(in, opened, &length), CKR_BUFFER_TOO_SMALL);
        MUST(p11->C_DecryptFinal(in, opened, &length), CKR_OK);
        CHECK(length == 32 && memcmp(opened, text, 32) == 0);
        MUST(p11->C_DecryptInit(in, how, rsa), CKR_OK);
        MUST(p11->C_Decrypt(in, sealed, sealed_length - 1, opened, &length), CKR_ENCRYPTED_DATA_LEN_RANGE);
    }
    MUST(p11->C_DecryptInit(in, &oaep, rsa), CKR_OK);
    MUST(p11->C_Decrypt(in, NULL, 384, opened, &length), CKR_ARGUMENTS_BAD);
    MUST(p11->C_Decrypt(in, sealed, 384, opened, &length), CKR_OPERATION_NOT_INITIALIZED);
    sealed[100] ^= 1;
    length = sizeof opened;
    CK_ULONG sealed_length = 384;
    MUST(p11->C_DecryptInit(in, &oaep, rsa), CKR_OK);
    MUST(p11->C_Decrypt(in, sealed, sealed_length, opened, &length), CKR_ENCRYPTED_DATA_INVALID);
    /* The end. */
    MUST(p11->C_Finalize(&length), CKR_ARGUMENTS_BAD);
    MUST(p11->C_Finalize(NULL), CKR_OK);
    MUST(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
    MUST(p11->C_SignInit(in, &by_sha256, rsa), CKR_CRYPTOKI_NOT_INITIALIZED);
    MUST(p11->C_Initialize(NULL), CKR_OK);
    MUST(p11->C_SignInit(in, &by_sha256, rsa), CKR_SESSION_HANDLE_INVALID);
    sign(session(), &by_ecdsa, key, public);
}

static int descriptors(void) {
    int open = 0;
    for (int at = 0; at < 1024; at++) open += lseek(at, 0, SEEK_CUR) != -1 || fcntl(at, F_GETFD) != -1;
    return open;
}

/* Nothing grows, and nothing is there before a key is used. */
static void rounds(void) {
    MUST(p11->C_Finalize(NULL), CKR_OK);
    int before = descriptors();
    for (int round = 0; round < 100; round++) {
        MUST(p11->C_Initialize(NULL), CKR_OK);
        sign(session(), &by_ecdsa, key, public);
        MUST(p11->C_Finalize(NULL), CKR_OK);
    }
    CHECK(descriptors() == before);
}

/* A program that uses no key gets nothing; one that loads and unloads the module again and again, nothing that grows. */
static void reload(const char *path) {
    int before = descriptors(), after = 0;
    load(path);
    MUST(p11->C_Initialize(NULL), CKR_OK);
    CK_ULONG mechanisms;
    MUST(p11->C_GetMechanismList(SLOT, NULL, &mechanisms), CKR_OK);
    MUST(p11->C_CloseSession(session()), CKR_OK);
    CHECK(descriptors() == before);
    CHECK(access("/proc/self/task", R_OK) != 0 || system("test $(ls /proc/$PPID/task | wc -l) = 1") == 0);
    MUST(p11->C_Finalize(NULL), CKR_OK);
    dlclose(library);
    for (int round = 0; round < 50; round++) {
        load(path);
        MUST(p11->C_Initialize(NULL), CKR_OK);
        CK_SESSION_HANDLE in = session();
        sign(in, &by_ecdsa, find(in, CKO_PRIVATE_KEY, "ec"), find(in, CKO_PUBLIC_KEY, "ec"));
        MUST(p11->C_Finalize(NULL), CKR_OK);
        dlclose(library);
        if (!round) after = descriptors();
    }
    CHECK(descriptors() == after);
}

/* A program finds its key as root, and signs as a user without rights in an empty root folder. */
static void jail(void) {
    CK_SESSION_HANDLE in = session();
    CHECK(mkdir("empty", 0755) == 0 && chroot("empty") == 0 && chdir("/") == 0);
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    sign(in, &by_ecdsa, key, public);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    alarm(120);
    if (!strcmp(arguments[2], "reload")) {
        reload(arguments[1]);
        return 0;
    }
    load(arguments[1]);
    MUST(p11->C_SignInit(1, &by_sha256, 1), CKR_CRYPTOKI_NOT_INITIALIZED);
    CK_C_INITIALIZE_ARGS locks = {NULL, NULL, NULL, NULL, CKF_OS_LOCKING_OK, NULL};
    MUST(p11->C_Initialize(&locks), CKR_OK);
    CK_SESSION_HANDLE in = session();
    key = find(in, CKO_PRIVATE_KEY, "ec");
    public = find(in, CKO_PUBLIC_KEY, "ec");
    MUST(p11->C_CloseSession(in), CKR_OK);
    const char *what = arguments[2];
    pthread_t thread;
    if (!strcmp(what, "forks")) forks();
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "death")) death();
    else if (!strcmp(what, "middle")) middle();
    else if (!strcmp(what, "answers")) answers();
    else if (!strcmp(what, "rounds")) rounds();
    else if (!strcmp(what, "jail")) jail();
    else if (!strcmp(what, "exit")) {
        /* Threads sign while the process ends, and C_Finalize is never called. */
        for (int at = 0; at < 4; at++) pthread_create(&thread, NULL, endless, NULL);
        usleep(20000);
        exit(0);
    } else if (!strcmp(what, "close")) {
        signer((void *)1);
        MUST(p11->C_Finalize(NULL), CKR_OK);
        dlclose(library);
    } else return 1;
    return 0;
}
