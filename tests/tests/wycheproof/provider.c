/* A program of OpenSSL's that does what its input says, a line an answer:
     key SUBJECT_PUBLIC_KEY_INFO           takes in a public key
     load NAME                             loads a private key of cryptod
     verify HASH pkcs1|pss|- SALT MGF1 MESSAGE SIGNATURE
     decrypt pkcs1|oaep HASH MGF1 LABEL CIPHERTEXT
   Bytes are in hexadecimal, and "-" is nothing. The answer is "no", "yes", or the bytes behind "yes ". Its argument
   is the property of the provider that takes in public keys. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/store.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    unsigned char *start;
    size_t length;
};

static struct bytes bytes(const char *text) {
    struct bytes all = {OPENSSL_zalloc(strlen(text) / 2 + 1), 0};
    unsigned value;
    if (strcmp(text, "-") != 0)
        for (; sscanf(text, "%2x", &value) == 1; text += 2) all.start[all.length++] = value;
    return all;
}

static EVP_PKEY *key;

/* A key that another provider has read, with its public half in the provider of these properties. */
static int take_in(const char *properties, const char *text) {
    struct bytes info = bytes(text);
    const unsigned char *at = info.start;
    EVP_PKEY *read = d2i_PUBKEY(NULL, &at, info.length);
    OSSL_PARAM *parts = NULL;
    EVP_PKEY_free(key);
    key = NULL;
    EVP_PKEY_CTX *context =
        read ? EVP_PKEY_CTX_new_from_name(NULL, EVP_PKEY_get0_type_name(read), properties) : NULL;
    int done = context && EVP_PKEY_todata(read, EVP_PKEY_PUBLIC_KEY, &parts) == 1
        && EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parts) == 1
        && strcmp(OSSL_PROVIDER_get0_name(EVP_PKEY_get0_provider(key)), "keyway") == 0
        && EVP_PKEY_eq(read, key) == 1 && EVP_PKEY_eq(key, read) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(read);
    OSSL_PARAM_free(parts);
    OPENSSL_free(info.start);
    return done;
}

static int load(const char *name) {
    char uri[256];
    snprintf(uri, sizeof uri, "keyway:%s", name);
    EVP_PKEY_free(key);
    key = NULL;
    OSSL_STORE_CTX *store = OSSL_STORE_open(uri, NULL, NULL, NULL, NULL);
    OSSL_STORE_INFO *info = store ? OSSL_STORE_load(store) : NULL;
    if (info) key = OSSL_STORE_INFO_get1_PKEY(info);
    OSSL_STORE_INFO_free(info);
    OSSL_STORE_close(store);
    return key != NULL;
}

static EVP_MD_CTX *begun(const char *hash, const char *padding, const char *salt, const char *mgf1) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *choices;
    int done = EVP_DigestVerifyInit_ex(context, &choices, *hash == '-' ? NULL : hash, NULL, NULL, key, NULL) == 1;
    if (done && strcmp(padding, "pss") == 0)
        done = EVP_PKEY_CTX_set_rsa_padding(choices, RSA_PKCS1_PSS_PADDING) == 1
            && EVP_PKEY_CTX_set_rsa_pss_saltlen(choices, atoi(salt)) == 1
            && EVP_PKEY_CTX_set_rsa_mgf1_md_name(choices, mgf1, NULL) == 1;
    if (!done) {
        EVP_MD_CTX_free(context);
        return NULL;
    }
    return context;
}

/* At once, and in parts where the key hashes what it signs: both answers have to be the same. */
static int verify(const char *hash, const char *padding, const char *salt, const char *mgf1,
                  struct bytes message, struct bytes signature) {
    EVP_MD_CTX *context = begun(hash, padding, salt, mgf1);
    int done = context
        && EVP_DigestVerify(context, signature.start, signature.length, message.start, message.length) == 1;
    EVP_MD_CTX_free(context);
    if (*hash == '-') return done;
    context = begun(hash, padding, salt, mgf1);
    size_t half = message.length / 2;
    int in_parts = context && EVP_DigestVerifyUpdate(context, message.start, half) == 1
        && EVP_DigestVerifyUpdate(context, message.start + half, message.length - half) == 1
        && EVP_DigestVerifyFinal(context, signature.start, signature.length) == 1;
    EVP_MD_CTX_free(context);
    if (in_parts != done) abort();
    return done;
}

static void decrypt(const char *padding, const char *hash, const char *mgf1, struct bytes label,
                    struct bytes ciphertext) {
    unsigned char out[2048];
    size_t length = sizeof out;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int done = context && EVP_PKEY_decrypt_init(context) == 1;
    if (done && strcmp(padding, "oaep") == 0)
        done = EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) == 1
            && EVP_PKEY_CTX_set_rsa_oaep_md_name(context, hash, NULL) == 1
            && EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, mgf1, NULL) == 1
            && (label.length == 0
                || EVP_PKEY_CTX_set0_rsa_oaep_label(context, OPENSSL_memdup(label.start, label.length),
                                                    label.length) == 1);
    done = done && EVP_PKEY_decrypt(context, out, &length, ciphertext.start, ciphertext.length) == 1;
    EVP_PKEY_CTX_free(context);
    printf(done ? "yes " : "no");
    if (done && length == 0) printf("-");
    for (size_t at = 0; done && at < length; at++) printf("%02x", out[at]);
    puts("");
}

/* With a public key that stock OpenSSL holds. */
static EVP_PKEY *peer_of(struct bytes point) {
    char group[32];
    OSSL_PARAM params[3], *next = params;
    if (EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1)
        *next++ = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.start, point.length);
    *next = OSSL_PARAM_construct_end();
    EVP_PKEY *peer = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, EVP_PKEY_get0_type_name(key), NULL);
    if (context && EVP_PKEY_fromdata_init(context) == 1) EVP_PKEY_fromdata(context, &peer, EVP_PKEY_PUBLIC_KEY, params);
    EVP_PKEY_CTX_free(context);
    return peer;
}

static void derive(struct bytes point) {
    unsigned char out[66];
    size_t length = sizeof out;
    EVP_PKEY *peer = peer_of(point);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int done = peer && context && EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, peer) == 1
        && EVP_PKEY_derive(context, out, &length) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(peer);
    printf(done ? "yes " : "no");
    for (size_t at = 0; done && at < length; at++) printf("%02x", out[at]);
    puts("");
}

int main(int count, char **arguments) {
    static char line[1 << 20];
    if (count != 2) return 1;
    while (fgets(line, sizeof line, stdin)) {
        char *word[8] = {0};
        int words = 0;
        for (char *next = strtok(line, " \n"); next && words < 8; next = strtok(NULL, " \n")) word[words++] = next;
        if (words == 2 && strcmp(word[0], "key") == 0) {
            puts(take_in(arguments[1], word[1]) ? "yes" : "no");
        } else if (words == 2 && strcmp(word[0], "load") == 0) {
            puts(load(word[1]) ? "yes" : "no");
        } else if (words == 7 && strcmp(word[0], "verify") == 0) {
            struct bytes message = bytes(word[5]), signature = bytes(word[6]);
            puts(verify(word[1], word[2], word[3], word[4], message, signature) ? "yes" : "no");
            OPENSSL_free(message.start);
            OPENSSL_free(signature.start);
        } else if (words == 6 && strcmp(word[0], "decrypt") == 0) {
            struct bytes label = bytes(word[4]), ciphertext = bytes(word[5]);
            decrypt(word[1], word[2], word[3], label, ciphertext);
            OPENSSL_free(label.start);
            OPENSSL_free(ciphertext.start);
        } else if (words == 2 && strcmp(word[0], "derive") == 0) {
            struct bytes point = bytes(word[1]);
            derive(point);
            OPENSSL_free(point.start);
        } else {
            return 2;
        }
        ERR_clear_error();
    }
    EVP_PKEY_free(key);
    return 0;
}
