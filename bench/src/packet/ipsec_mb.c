/* Intel's multi-buffer library. Where it has calls for QUIC (from 1.4 on) they take a batch. Before
 * that there are direct calls, one packet after the other; the masks of a batch are one ECB job, and
 * that of a single packet is CFB of zeros. One call has one key, so that a batch of several keys is
 * not for it. */
#include <intel-ipsec-mb.h>
#include "peer.h"

#if IMB_VERSION_NUM >= IMB_VERSION(1, 4, 0)
#define QUIC 1
#else
#define QUIC 0
#endif

static IMB_MGR *manager;

static struct {
    struct gcm_key_data gcm;
    DECLARE_ALIGNED(uint8_t mask[16 * 15], 16);
    uint8_t chacha[32], iv[12];
} *keys[2];

static const char *peer_version(void) {
    static char text[100];
    manager = alloc_mb_mgr(0);
    init_mb_mgr_auto(manager, NULL);
    snprintf(text, sizeof text, "intel-ipsec-mb %s%s", imb_get_version_str(),
             QUIC ? "" : " (without calls for QUIC)");
    for (int chacha = 0; chacha < 2; chacha++)
        keys[chacha] = aligned_alloc(64, (sizeof *keys[0] + 63) / 64 * 64 * KEYS);
    return text;
}

static int peer_does(const struct task *task) {
    if (task->keys > 1 && task->batch > 1) return 0;
    return !(task->chacha && task->header);
}

static void peer_key(unsigned chacha, size_t index, const uint8_t *key, const uint8_t *iv,
                     const uint8_t *header_key) {
    DECLARE_ALIGNED(uint8_t unused[16 * 15], 16);
    typeof(keys[0]) with = &keys[chacha][index];
    memcpy(with->iv, iv, 12);
    memcpy(with->chacha, key, chacha ? 32 : 16);
    if (!chacha) {
        IMB_AES128_GCM_PRE(manager, key, &with->gcm);
        IMB_AES_KEYEXP_128(manager, header_key, with->mask, unused);
    }
}

static inline void masks(const struct task *task, typeof(keys[0]) with, uint8_t *packets,
                         size_t count) {
    size_t stride = packet_bytes(task);
#if QUIC
    const void *samples[BATCH];
    uint8_t made[BATCH][5];
    void *outputs[BATCH];
    for (size_t at = 0; at < count; at++) {
        samples[at] = packets + at * stride + SAMPLE_AT;
        outputs[at] = made[at];
    }
    imb_quic_hp_aes_ecb(manager, with->mask, outputs, (const void *const *)samples, count,
                        IMB_KEY_128_BYTES);
#else
    if (count == 1) {
        static const uint8_t zeros[16];
        uint8_t one[16];
        IMB_AES128_CFB_ONE(manager, one, zeros, packets + SAMPLE_AT, with->mask, 16);
        apply_mask(packets, one);
        return;
    }
    DECLARE_ALIGNED(uint8_t made[BATCH][16], 64);
    for (size_t at = 0; at < count; at++)
        memcpy(made[at], packets + at * stride + SAMPLE_AT, 16);
    IMB_JOB *job = IMB_GET_NEXT_JOB(manager);
    job->cipher_mode = IMB_CIPHER_ECB;
    job->cipher_direction = IMB_DIR_ENCRYPT;
    job->chain_order = IMB_ORDER_CIPHER_HASH;
    job->hash_alg = IMB_AUTH_NULL;
    job->enc_keys = job->dec_keys = with->mask;
    job->key_len_in_bytes = 16;
    job->src = job->dst = made[0];
    job->cipher_start_src_offset_in_bytes = 0;
    job->msg_len_to_cipher_in_bytes = count * 16;
    job->iv_len_in_bytes = 0;
    if (!IMB_SUBMIT_JOB_NOCHECK(manager)) IMB_FLUSH_JOB(manager);
#endif
    for (size_t at = 0; at < count; at++) apply_mask(packets + at * stride, made[at]);
}

static inline void gcm(const struct task *task, typeof(keys[0]) with, uint8_t *packets,
                       size_t count, uint8_t nonces[][12], uint8_t tags[][TAG]) {
    size_t stride = packet_bytes(task);
#if QUIC
    void *data[BATCH], *tag[BATCH];
    const void *from[BATCH], *iv[BATCH], *aad[BATCH];
    uint64_t lengths[BATCH];
    for (size_t at = 0; at < count; at++) {
        from[at] = data[at] = packets + at * stride + HEADER;
        iv[at] = nonces[at];
        aad[at] = packets + at * stride;
        tag[at] = task->open ? tags[at] : packets + at * stride + HEADER + task->bytes;
        lengths[at] = task->bytes;
    }
    imb_quic_aes_gcm(manager, &with->gcm, IMB_KEY_128_BYTES,
                     task->open ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT, data,
                     (const void *const *)from, lengths, (const void *const *)iv,
                     (const void *const *)aad, HEADER, tag, TAG, count);
#else
    for (size_t at = 0; at < count; at++) {
        uint8_t *packet = packets + at * stride, *payload = packet + HEADER;
        struct gcm_context_data context;
        if (task->open)
            IMB_AES128_GCM_DEC(manager, &with->gcm, &context, payload, payload, task->bytes,
                               nonces[at], packet, HEADER, tags[at], TAG);
        else
            IMB_AES128_GCM_ENC(manager, &with->gcm, &context, payload, payload, task->bytes,
                               nonces[at], packet, HEADER, payload + task->bytes, TAG);
    }
#endif
}

static int peer_call(const struct task *task, uint8_t *packets, size_t count, size_t number,
                     size_t key) {
    typeof(keys[0]) with = &keys[task->chacha][key];
    size_t stride = packet_bytes(task);
    uint8_t nonces[BATCH][12], tags[BATCH][TAG];
    if (task->open && task->header) masks(task, with, packets, count);
    for (size_t at = 0; at < count; at++) {
        uint8_t *packet = packets + at * stride;
        if (!task->open) write_header(packet, number + at);
        write_nonce(nonces[at], with->iv, task->open ? read_number(packet) : number + at);
    }
    for (size_t at = 0; task->chacha && at < count; at++) {
        uint8_t *packet = packets + at * stride, *payload = packet + HEADER;
        struct chacha20_poly1305_context_data context;
        IMB_CHACHA20_POLY1305_INIT(manager, with->chacha, &context, nonces[at], packet, HEADER);
        if (task->open)
            IMB_CHACHA20_POLY1305_DEC_UPDATE(manager, with->chacha, &context, payload, payload,
                                             task->bytes);
        else
            IMB_CHACHA20_POLY1305_ENC_UPDATE(manager, with->chacha, &context, payload, payload,
                                             task->bytes);
        uint8_t *tag = task->open ? tags[at] : payload + task->bytes;
        IMB_CHACHA20_POLY1305_ENC_FINALIZE(manager, &context, tag, TAG);
    }
    if (!task->chacha) gcm(task, with, packets, count, nonces, tags);
    int wrong = 0;
    if (task->open)
        for (size_t at = 0; at < count; at++)
            wrong |= differ(tags[at], packets + at * stride + HEADER + task->bytes, TAG);
    else if (task->header)
        masks(task, with, packets, count);
    return !wrong;
}
