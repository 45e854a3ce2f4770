/* How a process ends with keys of cryptod: threads that sign, contexts that are freed in any order. */
#include <dirent.h>
#include <openssl/evp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/store.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    ERR_print_errors_fp(stderr);
    abort();
}

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
static pthread_barrier_t begun;

/* Once libcrypto has cleaned up, its own lookups crash or fail (without any provider too): this thread makes none
   behind the barrier. */
static void *signer(void *unused) {
    (void)unused;
    unsigned char signature[512];
    EVP_MD_CTX *sign = EVP_MD_CTX_new();
    if (EVP_DigestSignInit_ex(sign, NULL, "SHA256", NULL, NULL, shared, NULL) != 1)
        fail("no signature");
    pthread_barrier_wait(&begun);
    for (;;) {
        size_t length = sizeof(signature);
        signed_once |= EVP_DigestSign(sign, signature, &length, (const unsigned char *)"text", 4) == 1;
    }
}

/* A thread that signs so often, with the key that all share. */
static void *some(void *rounds) {
    for (long round = 0; round < (long)rounds; round++)
        if (!sign(NULL, shared))
            fail("no signature");
    return NULL;
}

/* A thread with a library context of its own, which is freed while the thread lives on. */
static pthread_barrier_t signed_all, freed;

struct own {
    OSSL_LIB_CTX *context;
    EVP_PKEY *key;
};

static void *outlive(void *argument) {
    struct own *own = argument;
    own->context = OSSL_LIB_CTX_new();
    if (!OSSL_LIB_CTX_load_config(own->context, getenv("OPENSSL_CONF")))
        fail("no configuration");
    own->key = load(own->context, "keyway:ec");
    if (own->key == NULL || !sign(own->context, own->key))
        fail("no signature");
    pthread_barrier_wait(&signed_all);
    pthread_barrier_wait(&freed);
    return NULL;
}

static void threads_outlive_contexts(void) {
    pthread_t threads[8];
    struct own own[8];
    pthread_barrier_init(&signed_all, NULL, 9);
    pthread_barrier_init(&freed, NULL, 9);
    for (int at = 0; at < 8; at++)
        pthread_create(&threads[at], NULL, outlive, &own[at]);
    pthread_barrier_wait(&signed_all);
    for (int at = 0; at < 8; at++) {
        EVP_PKEY_free(own[at].key);
        OSSL_LIB_CTX_free(own[at].context);
    }
    pthread_barrier_wait(&freed);
    for (int at = 0; at < 8; at++)
        pthread_join(threads[at], NULL);
}

static int files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* A number of this process, such as "Threads" or "VmRSS" in KiB. */
static int figure(const char *name) {
    char line[256];
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof(line), status) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            count = atoi(line + strlen(name) + 1);
    fclose(status);
    return count;
}

static int threads(void) {
    return figure("Threads");
}

/* Loads a key again and again, by URI and by file. Nothing grows: the first tenth has made what stays. */
static int grow(int rounds) {
    int opened = 0, resident = 0;
    for (int round = 0; round < rounds; round++) {
        EVP_PKEY *by_uri = load(NULL, "keyway:ec"), *by_file = NULL;
        FILE *file = fopen("ec.pem", "r");
        by_file = PEM_read_PrivateKey(file, NULL, NULL, NULL);
        fclose(file);
        if (by_uri == NULL || by_file == NULL || EVP_PKEY_eq(by_uri, by_file) != 1)
            return 16;
        if (round % 100 == 0 && !sign(NULL, by_file))
            return 17;
        EVP_PKEY_free(by_uri);
        EVP_PKEY_free(by_file);
        if (round == rounds / 10) {
            opened = files();
            resident = figure("VmRSS");
        }
    }
    if (files() != opened || threads() != 1)
        return 18;
    return figure("VmRSS") <= resident + 512 ? 0 : 19;
}

/* A decryption tells the choices that it was given. */
static int told(EVP_PKEY *key) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
    char hash[50], mgf1[50];
    unsigned char *label = NULL;
    int padding = 0;
    int done = EVP_PKEY_decrypt_init(context) == 1
        && EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1
        && EVP_PKEY_CTX_set_rsa_oaep_md_name(context, "SHA384", NULL) == 1
        && EVP_PKEY_CTX_set0_rsa_oaep_label(context, OPENSSL_strdup("label"), 5) == 1
        && EVP_PKEY_CTX_get_rsa_padding(context, &padding) > 0 && padding == RSA_PKCS1_OAEP_PADDING
        && EVP_PKEY_CTX_get_rsa_oaep_md_name(context, hash, sizeof(hash)) == 1
        && EVP_PKEY_CTX_get_rsa_mgf1_md_name(context, mgf1, sizeof(mgf1)) == 1
        && EVP_MD_is_a(EVP_sha384(), hash) && EVP_MD_is_a(EVP_sha384(), mgf1)
        && EVP_PKEY_CTX_get0_rsa_oaep_label(context, &label) == 5 && memcmp(label, "label", 5) == 0;
    EVP_PKEY_CTX_free(context);
    return done;
}

/* A program asks a key for more than signatures. */
static int asked(const char *uri) {
    unsigned char one[512], other[512];
    size_t length = sizeof(one), other_length = sizeof(other);
    EVP_PKEY *key = load(NULL, uri), *again = EVP_PKEY_dup(key);
    BIO *out = BIO_new(BIO_s_mem());
    EVP_PKEY_print_params(out, key, 0, NULL);
    int done = EVP_PKEY_print_public(out, key, 0, NULL) == 1 && EVP_PKEY_eq(key, again) == 1
        && (!EVP_PKEY_is_a(key, "RSA") || told(key));
    BIO_free(out);
    /* A signature in the middle is copied, and both go on. */
    EVP_MD_CTX *first = EVP_MD_CTX_new(), *second = EVP_MD_CTX_new(), *verify = EVP_MD_CTX_new();
    done = done && EVP_DigestSignInit_ex(first, NULL, "SHA256", NULL, NULL, again, NULL) == 1
        && EVP_DigestSignUpdate(first, "te", 2) == 1 && EVP_MD_CTX_copy_ex(second, first) == 1
        && EVP_DigestSignUpdate(first, "xt", 2) == 1 && EVP_DigestSignUpdate(second, "am", 2) == 1
        && EVP_DigestSignFinal(first, one, &length) == 1
        && EVP_DigestSignFinal(second, other, &other_length) == 1
        && EVP_DigestVerifyInit_ex(verify, NULL, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_DigestVerify(verify, one, length, (const unsigned char *)"text", 4) == 1
        && EVP_DigestVerifyInit_ex(verify, NULL, "SHA256", NULL, NULL, key, NULL) == 1
        && EVP_DigestVerify(verify, other, other_length, (const unsigned char *)"team", 4) == 1;
    EVP_MD_CTX_free(first);
    EVP_MD_CTX_free(second);
    EVP_MD_CTX_free(verify);
    EVP_PKEY_free(key);
    EVP_PKEY_free(again);
    return done;
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
    if (strcmp(how, "grow") == 0)
        return grow(2000);
    if (strcmp(how, "asked") == 0)
        return asked("keyway:rsa") && asked("keyway:ec") && asked("keyway:ec521") ? 0 : 22;
    if (strcmp(how, "outlive") == 0) {
        threads_outlive_contexts();
        return files() == before && threads() == 1 ? 0 : 20;
    }
    shared = load(NULL, "keyway:ec");
    if (shared == NULL) {
        ERR_print_errors_fp(stderr);
        return 14;
    }
    if (strcmp(how, "threads") == 0) {
        pthread_t signers[8];
        for (int at = 0; at < 8; at++)
            pthread_create(&signers[at], NULL, some, (void *)20L);
        for (int at = 0; at < 8; at++)
            pthread_join(signers[at], NULL);
        EVP_PKEY_free(shared);
        return 0;
    }
    if (strcmp(how, "cleanup") == 0) {
        if (!sign(NULL, shared))
            return 21;
        OPENSSL_cleanup();
        EVP_PKEY_free(shared);
        return 0;
    }
    pthread_barrier_init(&begun, NULL, 9);
    for (int number = 0; number < 8; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, signer, NULL);
    }
    pthread_barrier_wait(&begun);
    while (!signed_once)
        usleep(1000);
    if (strcmp(how, "exit") == 0)
        exit(0);
    return 15;
}
