/* BoringSSL as quiche calls it: sealing with the tag apart, the mask by one AES block. The library
 * comes linked, without its headers. */
#include "peer.h"

typedef struct evp_aead_st EVP_AEAD;
typedef struct evp_aead_ctx_st EVP_AEAD_CTX;
typedef struct {
    uint32_t round_keys[60];
    unsigned rounds;
} AES_KEY;

const EVP_AEAD *EVP_aead_aes_128_gcm(void);
const EVP_AEAD *EVP_aead_chacha20_poly1305(void);
EVP_AEAD_CTX *EVP_AEAD_CTX_new(const EVP_AEAD *, const uint8_t *key, size_t, size_t tag_bytes);
int EVP_AEAD_CTX_seal_scatter(const EVP_AEAD_CTX *, uint8_t *out, uint8_t *tag, size_t *tag_bytes,
                              size_t tag_bytes_max, const uint8_t *nonce, size_t, const uint8_t *in,
                              size_t, const uint8_t *extra, size_t, const uint8_t *aad, size_t);
int EVP_AEAD_CTX_open_gather(const EVP_AEAD_CTX *, uint8_t *out, const uint8_t *nonce, size_t,
                             const uint8_t *in, size_t, const uint8_t *tag, size_t,
                             const uint8_t *aad, size_t);
int AES_set_encrypt_key(const uint8_t *key, unsigned bits, AES_KEY *);
void AES_encrypt(const uint8_t *in, uint8_t *out, const AES_KEY *);
void CRYPTO_chacha_20(uint8_t *out, const uint8_t *in, size_t, const uint8_t key[32],
                      const uint8_t nonce[12], uint32_t counter);

static struct {
    EVP_AEAD_CTX *aead;
    AES_KEY mask;
    uint8_t iv[12], chacha_mask[32];
} keys[2][KEYS];

static const char *peer_version(void) { return "BoringSSL (boring-sys " BORING_SYS ")"; }

static int peer_does(const struct task *task) { return task->batch == 1; }

static void peer_key(unsigned chacha, size_t index, const uint8_t *key, const uint8_t *iv,
                     const uint8_t *header_key) {
    const EVP_AEAD *aead = chacha ? EVP_aead_chacha20_poly1305() : EVP_aead_aes_128_gcm();
    typeof(keys[0][0]) *with = &keys[chacha][index];
    with->aead = EVP_AEAD_CTX_new(aead, key, chacha ? 32 : 16, TAG);
    AES_set_encrypt_key(header_key, 128, &with->mask);
    memcpy(with->chacha_mask, header_key, 32);
    memcpy(with->iv, iv, 12);
}

static inline void mask(const struct task *task, typeof(&keys[0][0]) with, uint8_t *packet) {
    static const uint8_t zeros[5];
    uint8_t made[16];
    const uint8_t *sample = packet + SAMPLE_AT;
    if (task->chacha) {
        uint32_t counter;
        memcpy(&counter, sample, 4);
        CRYPTO_chacha_20(made, zeros, 5, with->chacha_mask, sample + 4, counter);
    } else {
        AES_encrypt(sample, made, &with->mask);
    }
    apply_mask(packet, made);
}

static int peer_call(const struct task *task, uint8_t *packet, size_t count, size_t number,
                     size_t key) {
    (void)count;
    typeof(keys[0][0]) *with = &keys[task->chacha][key];
    uint8_t nonce[12], *payload = packet + HEADER, *tag = payload + task->bytes;
    if (task->open) {
        if (task->header) mask(task, with, packet);
        write_nonce(nonce, with->iv, read_number(packet));
        return EVP_AEAD_CTX_open_gather(with->aead, payload, nonce, 12, payload, task->bytes, tag,
                                        TAG, packet, HEADER);
    }
    size_t tag_bytes;
    write_header(packet, number);
    write_nonce(nonce, with->iv, number);
    int right = EVP_AEAD_CTX_seal_scatter(with->aead, payload, tag, &tag_bytes, TAG, nonce, 12,
                                          payload, task->bytes, NULL, 0, packet, HEADER);
    if (task->header) mask(task, with, packet);
    return right;
}
