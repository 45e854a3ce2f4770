/* How a process ends with keys of cryptod: threads that sign, contexts that are freed in any order. */
#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/store.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static EVP_PKEY *load(OSSL_LIB_CTX *context, const char *uri) {
    EVP_PKEY *key = NULL;
    OSSL_STORE_CTX *store = OSSL_STORE_open_ex(uri, context, NULL, NULL, NULL, NULL, NULL, NULL);
    OSSL_STORE_INFO *info = store == NULL ? NULL : OSSL_STORE_load(store);
    if (info != NULL && OSSL_STORE_INFO_get_type(info) == OSSL_STORE_INFO_PKEY)
        key = OSSL_STORE_INFO_get1_PKEY(info);
    OSSL_STORE_INFO_free(info);
    OSSL_STORE_close(store);
    return key;
}

static int sign(OSSL_LIB_CTX *context, EVP_PKEY *key) {
    unsigned char signature[512];
    size_t length = sizeof(signature);
    EVP_MD_CTX *sign = EVP_MD_CTX_new();
    int done = EVP_DigestSignInit_ex(sign, NULL, "SHA256", context, NULL, key, NULL) == 1
        && EVP_DigestSign(sign, signature, &length, (const unsigned char *)"text", 4) == 1
        && EVP_DigestVerifyInit_ex(sign, NULL, "SHA256", context, NULL, key, NULL) == 1
        && EVP_DigestVerify(sign, signature, length, (const unsigned char *)"text", 4) == 1;
    EVP_MD_CTX_free(sign);
    return done;
}

static EVP_PKEY *shared;
static volatile int signed_once;

/* Once libcrypto has cleaned up, its own lookups crash (without any provider too): this thread makes none. */
static void *signer(void *unused) {
    (void)unused;
    unsigned char signature[512];
    EVP_MD_CTX *sign = EVP_MD_CTX_new();
    if (EVP_DigestSignInit_ex(sign, NULL, "SHA256", NULL, NULL, shared, NULL) != 1)
        abort();
    for (;;) {
        size_t length = sizeof(signature);
        signed_once |= EVP_DigestSign(sign, signature, &length, (const unsigned char *)"text", 4) == 1;
    }
}

static int files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static int threads(void) {
    char line[256];
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof(line), status) != NULL)
        sscanf(line, "Threads: %d", &count);
    fclose(status);
    return count;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int before = files();
    if (strcmp(how, "unused") == 0) {
        OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);
        if (!OSSL_PROVIDER_available(NULL, "keyway") || files() != before || threads() != 1)
            return 10;
        return 0;
    }
    if (strcmp(how, "contexts") == 0) {
        for (int round = 0; round < 50; round++) {
            OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
            if (!OSSL_LIB_CTX_load_config(context, getenv("OPENSSL_CONF")))
                return 11;
            EVP_PKEY *key = load(context, "keyway:ec");
            if (key == NULL || (round % 5 == 0 && !sign(context, key)))
                return 12;
            EVP_PKEY_free(key);
            OSSL_LIB_CTX_free(context);
        }
        return files() == before && threads() == 1 ? 0 : 13;
    }
    shared = load(NULL, "keyway:ec");
    if (shared == NULL) {
        ERR_print_errors_fp(stderr);
        return 14;
    }
    for (int number = 0; number < 8; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, signer, NULL);
    }
    while (!signed_once)
        usleep(1000);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "many") == 0) {
        for (int round = 0; round < 2000; round++)
            EVP_PKEY_free(load(NULL, "keyway:ec"));
        _exit(0);
    }
    return 15;
}
