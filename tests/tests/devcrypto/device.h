/* What a program that is compiled for cryptodev-linux has of <crypto/cryptodev.h>, written down here, and calls with it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TRIPLE_DES_CBC = 2, SHA1_HMAC = 7, AES_CBC = 11, MD5 = 13, SHA1 = 14, NULL_CIPHER = 16, SHA256_HMAC = 18,
       SHA384_HMAC = 19, SHA512_HMAC = 20, AES_CTR = 21, AES_XTS = 22, AES_GCM = 50, SHA224 = 103, SHA256 = 104,
       SHA384 = 105, SHA512 = 106 };
enum { ENCRYPT = 0, DECRYPT = 1 };
enum { UPDATE = 1, FINAL = 2, WRITE_IV = 4, NO_ZC = 8, RESET = 64 };

struct session_op {
    uint32_t cipher, mac, keylen;
    const uint8_t *key;
    uint32_t mackeylen;
    const uint8_t *mackey;
    uint32_t ses;
};
struct crypt_op {
    uint32_t ses;
    uint16_t op, flags;
    uint32_t len;
    const uint8_t *src;
    uint8_t *dst, *mac, *iv;
};
struct crypt_auth_op {
    uint32_t ses;
    uint16_t op, flags;
    uint32_t len, auth_len;
    const uint8_t *auth_src, *src;
    uint8_t *dst, *tag;
    uint32_t tag_len;
    const uint8_t *iv;
    uint32_t iv_len;
};
struct alg_info { char cra_name[64], cra_driver_name[64]; };
struct session_info_op {
    uint32_t ses;
    struct alg_info cipher_info, hash_info;
    uint16_t alignmask;
    uint32_t flags;
};
struct cphash_op { uint32_t dst_ses, src_ses; };

#define CRIOGET _IOWR('c', 101, uint32_t)
#define CIOCGSESSION _IOWR('c', 102, struct session_op)
#define CIOCFSESSION _IOW('c', 103, uint32_t)
#define CIOCCRYPT _IOWR('c', 104, struct crypt_op)
#define CIOCKEY _IOWR('c', 105, uint8_t[152])
#define CIOCASYMFEAT _IOR('c', 106, uint32_t)
#define CIOCGSESSINFO _IOWR('c', 107, struct session_info_op)
#define CIOCAUTHCRYPT _IOWR('c', 109, struct crypt_auth_op)
#define CIOCCPHASH _IOW('c', 112, struct cphash_op)

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #what, errno); \
            _exit(1); \
        } \
    } while (0)
#define REFUSED(call, why) CHECK((errno = 0, (call) == -1) && errno == (why))

static inline int device(void) {
    int fd = open("/dev/crypto", O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

static inline uint32_t begin(int fd, uint32_t cipher, const void *key, uint32_t keylen, uint32_t mac, const void *mackey,
                      uint32_t mackeylen) {
    struct session_op op = { cipher, mac, keylen, key, mackeylen, mackey, 0 };
    CHECK(ioctl(fd, CIOCGSESSION, &op) == 0);
    return op.ses;
}

static inline int refuse(int fd, uint32_t cipher, const void *key, uint32_t keylen, uint32_t mac, const void *mackey,
                  uint32_t mackeylen) {
    struct session_op op = { cipher, mac, keylen, key, mackeylen, mackey, 0 };
    return ioctl(fd, CIOCGSESSION, &op);
}

static inline int crypt_flags(int fd, uint32_t ses, int op, int flags, const void *src, uint32_t len, void *dst, void *mac,
                       void *iv) {
    struct crypt_op it = { ses, op, flags, len, src, dst, mac, iv };
    return ioctl(fd, CIOCCRYPT, &it);
}

static inline int crypt_one(int fd, uint32_t ses, int op, const void *src, uint32_t len, void *dst, void *mac, void *iv) {
    return crypt_flags(fd, ses, op, 0, src, len, dst, mac, iv);
}
