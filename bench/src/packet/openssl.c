/* OpenSSL, as an application layers it: an EVP context a key and direction, kept, and the mask by
 * another one. */
#include <openssl/evp.h>
#include <openssl/opensslv.h>
#include "peer.h"

static struct {
    EVP_CIPHER_CTX *seal, *open, *mask;
    uint8_t iv[12];
} keys[2][KEYS];

static const char *peer_version(void) { return OpenSSL_version(OPENSSL_VERSION); }

static int peer_does(const struct task *task) { return task->batch == 1; }

static void peer_key(unsigned chacha, size_t index, const uint8_t *key, const uint8_t *iv,
                     const uint8_t *header_key) {
    const EVP_CIPHER *aead = chacha ? EVP_chacha20_poly1305() : EVP_aes_128_gcm();
    const EVP_CIPHER *cipher = chacha ? EVP_chacha20() : EVP_aes_128_ecb();
    memcpy(keys[chacha][index].iv, iv, 12);
    EVP_EncryptInit_ex(keys[chacha][index].seal = EVP_CIPHER_CTX_new(), aead, NULL, key, iv);
    EVP_DecryptInit_ex(keys[chacha][index].open = EVP_CIPHER_CTX_new(), aead, NULL, key, iv);
    EVP_EncryptInit_ex(keys[chacha][index].mask = EVP_CIPHER_CTX_new(), cipher, NULL, header_key,
                       NULL);
}

static inline void mask(const struct task *task, EVP_CIPHER_CTX *context, uint8_t *packet) {
    static const uint8_t zeros[16];
    uint8_t made[32];
    int length;
    if (task->chacha) {
        EVP_EncryptInit_ex(context, NULL, NULL, NULL, packet + SAMPLE_AT);
        EVP_EncryptUpdate(context, made, &length, zeros, 5);
    } else {
        EVP_EncryptUpdate(context, made, &length, packet + SAMPLE_AT, 16);
    }
    apply_mask(packet, made);
}

static int peer_call(const struct task *task, uint8_t *packet, size_t count, size_t number,
                     size_t key) {
    (void)count;
    typeof(keys[0][0]) *with = &keys[task->chacha][key];
    uint8_t nonce[12], *payload = packet + HEADER;
    int length;
    if (task->open) {
        if (task->header) mask(task, with->mask, packet);
        write_nonce(nonce, with->iv, read_number(packet));
        EVP_DecryptInit_ex(with->open, NULL, NULL, NULL, nonce);
        EVP_DecryptUpdate(with->open, NULL, &length, packet, HEADER);
        EVP_DecryptUpdate(with->open, payload, &length, payload, (int)task->bytes);
        EVP_CIPHER_CTX_ctrl(with->open, EVP_CTRL_AEAD_SET_TAG, TAG, payload + task->bytes);
        return EVP_DecryptFinal_ex(with->open, nonce, &length) == 1;
    }
    write_header(packet, number);
    write_nonce(nonce, with->iv, number);
    EVP_EncryptInit_ex(with->seal, NULL, NULL, NULL, nonce);
    EVP_EncryptUpdate(with->seal, NULL, &length, packet, HEADER);
    EVP_EncryptUpdate(with->seal, payload, &length, payload, (int)task->bytes);
    EVP_EncryptFinal_ex(with->seal, nonce, &length);
    EVP_CIPHER_CTX_ctrl(with->seal, EVP_CTRL_AEAD_GET_TAG, TAG, payload + task->bytes);
    if (task->header) mask(task, with->mask, packet);
    return 1;
}
