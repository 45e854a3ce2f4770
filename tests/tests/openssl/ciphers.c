// Messages under the provider's AES-GCM and digests, and under libcrypto's own: parts of any size, any IV and tag, copied
// contexts, in place, records of TLS 1.2. Then random bytes in a process and its child.

#include <openssl/conf.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX 5000
#define ROUNDS 3000

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "round %d, line %d: %s\n", round_number, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

static int round_number;
static unsigned long long state = 88172645463325252ull;

static unsigned random_below(unsigned bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % bound;
}

static void fill(unsigned char *place, int bytes) {
    for (int at = 0; at < bytes; at++) place[at] = (unsigned char)random_below(256);
}

// A message in parts, the context copied now and then in the middle.
static EVP_CIPHER_CTX *parts(EVP_CIPHER_CTX *context, unsigned char *out, const unsigned char *in, int bytes) {
    int done = 0, written;
    while (done < bytes) {
        int part = 1 + (int)random_below((unsigned)(bytes - done));
        CHECK(EVP_CipherUpdate(context, out == NULL ? NULL : out + done, &written, in + done, part) == 1);
        CHECK(written == part);
        done += part;
        if (random_below(4) == 0) {
            EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
            CHECK(EVP_CIPHER_CTX_copy(copy, context) == 1);
            EVP_CIPHER_CTX_free(context);
            context = copy;
        }
    }
    return context;
}

static EVP_CIPHER_CTX *begin(EVP_CIPHER *cipher, int encrypts, const unsigned char *key, const unsigned char *iv,
                             int iv_bytes) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    CHECK(EVP_CipherInit_ex2(context, cipher, NULL, NULL, encrypts, NULL) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, iv_bytes, NULL) == 1);
    CHECK(EVP_CIPHER_CTX_get_iv_length(context) == iv_bytes);
    // Key and IV at once, or in either order.
    switch (random_below(3)) {
    case 0:
        CHECK(EVP_CipherInit_ex2(context, NULL, key, iv, encrypts, NULL) == 1);
        break;
    case 1:
        CHECK(EVP_CipherInit_ex2(context, NULL, key, NULL, encrypts, NULL) == 1);
        CHECK(EVP_CipherInit_ex2(context, NULL, NULL, iv, encrypts, NULL) == 1);
        break;
    default:
        CHECK(EVP_CipherInit_ex2(context, NULL, NULL, iv, encrypts, NULL) == 1);
        CHECK(EVP_CipherInit_ex2(context, NULL, key, NULL, encrypts, NULL) == 1);
    }
    return context;
}

static void seal(EVP_CIPHER *cipher, const unsigned char *key, const unsigned char *iv, int iv_bytes,
                 const unsigned char *aad, int aad_bytes, const unsigned char *text, int bytes, unsigned char *out,
                 unsigned char *tag) {
    unsigned char rest[16];
    int written;
    EVP_CIPHER_CTX *context = begin(cipher, 1, key, iv, iv_bytes);
    context = parts(context, NULL, aad, aad_bytes);
    context = parts(context, out, text, bytes);
    CHECK(EVP_CipherFinal_ex(context, rest, &written) == 1 && written == 0);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
    // An IV serves one message.
    CHECK(EVP_CipherUpdate(context, out, &written, text, bytes > 0 ? 1 : 0) == (bytes == 0));
    EVP_CIPHER_CTX_free(context);
}

static int open_(EVP_CIPHER *cipher, const unsigned char *key, const unsigned char *iv, int iv_bytes,
                 const unsigned char *aad, int aad_bytes, unsigned char *text, int bytes, unsigned char *tag,
                 int tag_bytes) {
    unsigned char rest[16];
    int written;
    EVP_CIPHER_CTX *context = begin(cipher, 0, key, iv, iv_bytes);
    context = parts(context, NULL, aad, aad_bytes);
    // In place.
    context = parts(context, text, text, bytes);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) == 1);
    int right = EVP_CipherFinal_ex(context, rest, &written);
    EVP_CIPHER_CTX_free(context);
    return right;
}

static void messages(EVP_CIPHER *ours, EVP_CIPHER *stock) {
    static unsigned char text[MESSAGE_BYTES_MAX], aad[300], one[MESSAGE_BYTES_MAX], other[MESSAGE_BYTES_MAX];
    unsigned char key[32], iv[128], tag[16], tag_of_other[16];
    for (round_number = 0; round_number < ROUNDS; round_number++) {
        int bytes = (int)random_below(random_below(2) ? 100 : MESSAGE_BYTES_MAX);
        int aad_bytes = (int)random_below(300), iv_bytes = random_below(2) ? 12 : 1 + (int)random_below(128);
        fill(text, bytes), fill(aad, aad_bytes), fill(key, 32), fill(iv, iv_bytes);
        seal(ours, key, iv, iv_bytes, aad, aad_bytes, text, bytes, one, tag);
        seal(stock, key, iv, iv_bytes, aad, aad_bytes, text, bytes, other, tag_of_other);
        CHECK(memcmp(one, other, (size_t)bytes) == 0 && memcmp(tag, tag_of_other, 16) == 0);
        int tag_bytes = 1 + (int)random_below(16);
        CHECK(open_(ours, key, iv, iv_bytes, aad, aad_bytes, one, bytes, tag, tag_bytes) == 1);
        CHECK(memcmp(one, text, (size_t)bytes) == 0);
        tag[random_below((unsigned)tag_bytes)] ^= 1 << random_below(8);
        CHECK(open_(ours, key, iv, iv_bytes, aad, aad_bytes, other, bytes, tag, tag_bytes) != 1);
    }
}

// What libcrypto's own refuses, and what comes after it.
static void refusals(EVP_CIPHER *cipher) {
    unsigned char key[32] = {1}, iv[12] = {2}, text[32] = {3}, out[32], tag[17] = {0};
    int written;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    CHECK(EVP_EncryptInit_ex2(context, cipher, NULL, NULL, NULL) == 1);
    CHECK(EVP_EncryptUpdate(context, out, &written, text, 32) != 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 0, NULL) != 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 129, NULL) != 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) != 1);
    CHECK(EVP_EncryptInit_ex2(context, NULL, key, iv, NULL) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) != 1);
    CHECK(EVP_EncryptUpdate(context, out, &written, text, 32) == 1);
    // Additional data comes before the text.
    CHECK(EVP_EncryptUpdate(context, NULL, &written, text, 32) != 1);
    EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
    CHECK(EVP_CIPHER_CTX_copy(copy, context) == 1);
    CHECK(EVP_EncryptFinal_ex(copy, out, &written) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(copy, EVP_CTRL_AEAD_GET_TAG, 17, tag) != 1);
    CHECK(EVP_CIPHER_CTX_ctrl(copy, EVP_CTRL_AEAD_GET_TAG, 4, tag) == 1);
    EVP_CIPHER_CTX_free(copy);
    CHECK(EVP_DecryptInit_ex2(context, NULL, NULL, iv, NULL) == 1);
    CHECK(EVP_DecryptUpdate(context, out, &written, text, 32) == 1);
    // Without a tag no message is right.
    CHECK(EVP_DecryptFinal_ex(context, out, &written) != 1);
    EVP_CIPHER_CTX_free(context);
}

static void digests(const char *name) {
    static unsigned char text[MESSAGE_BYTES_MAX];
    unsigned char one[64], other[64];
    unsigned length, length_of_other;
    EVP_MD *ours = EVP_MD_fetch(NULL, name, "provider=keyway"), *stock = EVP_MD_fetch(NULL, name, "provider=default");
    CHECK(ours != NULL && stock != NULL);
    CHECK(EVP_MD_get_size(ours) == EVP_MD_get_size(stock));
    CHECK(EVP_MD_get_block_size(ours) == EVP_MD_get_block_size(stock));
    CHECK(EVP_MD_get_flags(ours) == EVP_MD_get_flags(stock) && EVP_MD_get_type(ours) == EVP_MD_get_type(stock));
    for (round_number = 0; round_number < 300; round_number++) {
        int bytes = (int)random_below(MESSAGE_BYTES_MAX), done = 0;
        fill(text, bytes);
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        CHECK(EVP_DigestInit_ex2(context, ours, NULL) == 1);
        while (done < bytes) {
            int part = 1 + (int)random_below((unsigned)(bytes - done));
            CHECK(EVP_DigestUpdate(context, text + done, (size_t)part) == 1);
            done += part;
            EVP_MD_CTX *copy = EVP_MD_CTX_new();
            CHECK(EVP_MD_CTX_copy_ex(copy, context) == 1);
            CHECK(EVP_DigestFinal_ex(context, one, &length) == 1);
            EVP_MD_CTX_free(context);
            CHECK(EVP_Digest(text, (size_t)done, other, &length_of_other, stock, NULL) == 1);
            CHECK(length == length_of_other && memcmp(one, other, length) == 0);
            context = copy;
        }
        EVP_MD_CTX_free(context);
        CHECK(EVP_Digest(text, (size_t)bytes, one, &length, ours, NULL) == 1);
        CHECK(EVP_Digest(text, (size_t)bytes, other, &length, stock, NULL) == 1);
        CHECK(memcmp(one, other, length) == 0);
    }
    EVP_MD_free(ours), EVP_MD_free(stock);
}

// A child has other bytes than its parent.
static void random_bytes(void) {
    unsigned char own[32], of_child[32];
    int ends[2], status;
    const EVP_RAND *generator = EVP_RAND_CTX_get0_rand(RAND_get0_public(NULL));
    CHECK(strcmp(EVP_RAND_get0_name(generator), "KEYWAY") == 0);
    static unsigned char many[200000];
    CHECK(RAND_bytes(many, sizeof many) == 1 && RAND_priv_bytes(own, sizeof own) == 1);
    RAND_add("more", 4, 0);
    CHECK(RAND_status() == 1);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (RAND_bytes(of_child, sizeof of_child) != 1) _exit(1);
        _exit(write(ends[1], of_child, sizeof of_child) != sizeof of_child);
    }
    CHECK(RAND_bytes(own, sizeof own) == 1);
    CHECK(read(ends[0], of_child, sizeof of_child) == sizeof of_child);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(memcmp(own, of_child, sizeof own) != 0);
}

int main(void) {
    const char *ciphers[] = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"};
    for (int at = 0; at < 3; at++) {
        EVP_CIPHER *ours = EVP_CIPHER_fetch(NULL, ciphers[at], "provider=keyway");
        EVP_CIPHER *stock = EVP_CIPHER_fetch(NULL, ciphers[at], "provider=default");
        CHECK(ours != NULL && stock != NULL);
        CHECK(EVP_CIPHER_get_flags(ours) == EVP_CIPHER_get_flags(stock));
        CHECK(EVP_CIPHER_get_nid(ours) == EVP_CIPHER_get_nid(stock));
        messages(ours, stock);
        refusals(stock), refusals(ours);
        EVP_CIPHER_free(ours), EVP_CIPHER_free(stock);
    }
    const char *names[] = {"SHA2-224", "SHA2-256", "SHA2-384", "SHA2-512", "SHA2-512/256", "SHA3-256", "SHA3-384",
                           "SHA3-512"};
    for (int at = 0; at < 8; at++) digests(names[at]);
    random_bytes();
    return 0;
}
