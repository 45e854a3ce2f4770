/* Random requests to /dev/crypto, each compared with what libcrypto makes of it. Its arguments: how many, and the seed. */
#include "device.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { BYTES_MAX = 70000 };

static const struct { uint32_t number, keylen, block, iv; const char *name; } CIPHERS[] = {
    { AES_CBC, 16, 16, 16, "AES-128-CBC" }, { AES_CBC, 32, 16, 16, "AES-256-CBC" },
    { AES_CBC, 24, 16, 16, "AES-192-CBC" },
    { AES_CTR, 16, 1, 16, "AES-128-CTR" },  { AES_CTR, 32, 1, 16, "AES-256-CTR" },
    { AES_XTS, 32, 16, 16, "AES-128-XTS" }, { AES_XTS, 64, 16, 16, "AES-256-XTS" },
    { TRIPLE_DES_CBC, 24, 8, 8, "DES-EDE3-CBC" }, { NULL_CIPHER, 0, 1, 0, NULL },
};
static const struct { uint32_t number; int keyed; const char *name; } HASHES[] = {
    { MD5, 0, "MD5" },        { SHA1, 0, "SHA1" },      { SHA224, 0, "SHA224" },      { SHA256, 0, "SHA256" },
    { SHA384, 0, "SHA384" },  { SHA512, 0, "SHA512" },  { SHA1_HMAC, 1, "SHA1" },     { SHA256_HMAC, 1, "SHA256" },
    { SHA384_HMAC, 1, "SHA384" }, { SHA512_HMAC, 1, "SHA512" },
};
#define COUNT(of) (sizeof of / sizeof of[0])

static uint64_t state;

static uint32_t next(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void fill(uint8_t *bytes, uint32_t n) {
    for (uint32_t at = 0; at < n; at++) bytes[at] = next(256);
}

/* Encrypts or decrypts in place. */
static void by_model(const char *name, int op, const uint8_t *key, const uint8_t *iv, uint8_t *text, uint32_t len) {
    int n = 0;
    if (name == NULL || len == 0) return;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    CHECK(EVP_CipherInit_ex(context, EVP_get_cipherbyname(name), NULL, key, iv, op == ENCRYPT) == 1);
    EVP_CIPHER_CTX_set_padding(context, 0);
    CHECK(EVP_CipherUpdate(context, text, &n, text, len) == 1 && (uint32_t)n == len);
    EVP_CIPHER_CTX_free(context);
}

int main(int count, char **arguments) {
    static uint8_t text[BYTES_MAX], plain[BYTES_MAX], model[BYTES_MAX], out[BYTES_MAX];
    CHECK(count == 3);
    state = strtoull(arguments[2], NULL, 10);
    int fd = device();
    for (long round = strtol(arguments[1], NULL, 10); round > 0; round--) {
        uint8_t key[64], iv[16], wanted_iv[16], mackey[512], mac[64], wanted_mac[64];
        unsigned maclen = 0;
        uint32_t which = next(COUNT(CIPHERS) + 1), how = next(COUNT(HASHES) + 1);
        int has_cipher = which < COUNT(CIPHERS), has_hash = how < COUNT(HASHES) || !has_cipher;
        if (!has_cipher) which = COUNT(CIPHERS) - 1;
        how %= COUNT(HASHES);
        uint32_t block = CIPHERS[which].block, keylen = CIPHERS[which].keylen, ivlen = CIPHERS[which].iv;
        uint32_t len = next(next(2) ? 200 : BYTES_MAX) / block * block, mackeylen = next(513);
        int op = next(2);
        fill(key, sizeof key), fill(iv, sizeof iv), fill(mackey, mackeylen), fill(text, len);

        memcpy(model, text, len);
        if (has_cipher) by_model(CIPHERS[which].name, op, key, iv, model, len);
        memcpy(plain, op == ENCRYPT ? text : model, len);
        const EVP_MD *hash = EVP_get_digestbyname(HASHES[how].name);
        if (HASHES[how].keyed) CHECK(HMAC(hash, mackey, mackeylen, plain, len, wanted_mac, &maclen) != NULL);
        else CHECK(EVP_Digest(plain, len, wanted_mac, &maclen, hash, NULL) == 1);

        uint32_t ses = begin(fd, has_cipher ? CIPHERS[which].number : 0, key, keylen,
                             has_hash ? HASHES[how].number : 0, mackey, HASHES[how].keyed ? mackeylen : 0);
        /* In one request, or in two that go on from each other; in place, beside it, or overlapping. */
        uint32_t cut = has_cipher && CIPHERS[which].number == AES_XTS ? len : next(len + 1) / block * block;
        if (CIPHERS[which].number == AES_CTR) cut -= cut % 16;
        uint8_t *from = out;
        if (next(2)) from = text;
        memcpy(from, text, len);
        int flags = has_hash ? UPDATE : 0;
        memcpy(wanted_iv, iv, 16);
        if (cut == len) {
            CHECK(crypt_one(fd, ses, op, from, len, out, has_hash ? mac : NULL, ivlen ? iv : NULL) == 0);
        } else if (cut == 0) {
            CHECK(crypt_flags(fd, ses, op, WRITE_IV | RESET, from, len, out, has_hash ? mac : NULL,
                              ivlen ? iv : NULL) == 0);
        } else {
            CHECK(crypt_flags(fd, ses, op, flags | RESET | WRITE_IV, from, cut, out, has_hash ? mac : NULL,
                              ivlen ? iv : NULL) == 0);
            CHECK(crypt_flags(fd, ses, op, flags | (has_hash ? FINAL : 0), from + cut, len - cut, out + cut,
                              has_hash ? mac : NULL, next(2) && ivlen ? iv : NULL) == 0);
        }
        if (has_cipher && memcmp(out, model, len) != 0) {
            fprintf(stderr, "%s, %u bytes, cut at %u, op %d, seed %s: not as libcrypto\n", CIPHERS[which].name, len, cut,
                    op, arguments[2]);
            return 1;
        }
        if (has_hash && memcmp(mac, wanted_mac, maclen) != 0) {
            fprintf(stderr, "hash %u, %u bytes, cut at %u, seed %s: not as libcrypto\n", HASHES[how].number, len, cut,
                    arguments[2]);
            return 1;
        }
        CHECK(next(8) == 0 || ioctl(fd, CIOCFSESSION, &ses) == 0);
    }
    return close(fd) != 0;
}
