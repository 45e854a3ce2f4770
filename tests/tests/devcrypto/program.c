/* A program that speaks /dev/crypto. With what it is to do as its argument; it says what went wrong, or nothing. "serve"
 * does what it reads, line by line. */
#include "device.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The bytes of hexadecimal digits; "-" for none. */
static uint32_t hex(const char *text, uint8_t *out) {
    uint32_t n = 0;
    if (text[0] == '-') return 0;
    for (; text[0] && text[1] && text[0] != '\n'; text += 2, n++) {
        unsigned byte;
        CHECK(sscanf(text, "%2x", &byte) == 1);
        out[n] = byte;
    }
    return n;
}

static void is(const uint8_t *found, const char *wanted) {
    static uint8_t bytes[4096];
    uint32_t n = hex(wanted, bytes);
    for (uint32_t at = 0; at < n; at++)
        if (found[at] != bytes[at]) {
            fprintf(stderr, "byte %u is %02x, wanted %s\n", at, found[at], wanted);
            _exit(1);
        }
}

/* --- what standards say --- */

static void cipher_is(int fd, uint32_t cipher, const char *key, const char *iv, const char *plain, const char *text) {
    uint8_t k[64], v[16], p[256], c[256], ivs[16];
    uint32_t keylen = hex(key, k), len = hex(plain, p);
    hex(iv, v);
    uint32_t ses = begin(fd, cipher, k, keylen, 0, NULL, 0);
    memcpy(ivs, v, 16);
    CHECK(crypt_one(fd, ses, ENCRYPT, p, len, c, NULL, ivs) == 0);
    is(c, text);
    CHECK(memcmp(ivs, v, 16) == 0);
    /* In place, and back. */
    CHECK(crypt_one(fd, ses, DECRYPT, c, len, c, NULL, ivs) == 0);
    is(c, plain);
    CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
}

static void mac_is(int fd, uint32_t mac, const void *key, uint32_t keylen, const void *text, uint32_t len,
                   const char *wanted) {
    uint8_t out[64];
    uint32_t ses = begin(fd, 0, NULL, 0, mac, key, keylen);
    CHECK(crypt_one(fd, ses, ENCRYPT, text, len, NULL, out, NULL) == 0);
    is(out, wanted);
    /* Byte after byte, and once more: a request without a flag begins anew. */
    for (uint32_t at = 0; at < len; at++)
        CHECK(crypt_flags(fd, ses, ENCRYPT, UPDATE | (at == 0 ? RESET : 0), (const char *)text + at, 1, NULL, NULL,
                          NULL) == 0);
    CHECK(crypt_flags(fd, ses, ENCRYPT, FINAL, NULL, 0, NULL, out, NULL) == 0);
    is(out, wanted);
    CHECK(crypt_one(fd, ses, DECRYPT, text, len, NULL, out, NULL) == 0);
    is(out, wanted);
    CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
}

static const char PLAIN[] =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17"
    "ad2b417be66c3710";
static const char KEY128[] = "2b7e151628aed2a6abf7158809cf4f3c";
static const char KEY192[] = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
static const char KEY256[] = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
static const char IV[] = "000102030405060708090a0b0c0d0e0f";
static const char COUNTER[] = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
static const char CBC128[] =
    "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09"
    "120eca307586e1a7";

static void answers(void) {
    int fd = device();
    /* SP 800-38A, F.2 and F.5. */
    cipher_is(fd, AES_CBC, KEY128, IV, PLAIN, CBC128);
    cipher_is(fd, AES_CBC, KEY192, IV, PLAIN,
              "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e279"
              "88598881d920a9e64f5615cd");
    cipher_is(fd, AES_CBC, KEY256, IV, PLAIN,
              "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2"
              "c39be9fcda6c19078c6a9d1b");
    cipher_is(fd, AES_CTR, KEY128, COUNTER, PLAIN,
              "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda"
              "2fbe03d1792170a0f3009cee");
    cipher_is(fd, AES_CTR, KEY256, COUNTER, PLAIN,
              "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58d"
              "b67aada613c2dd08457941a6");
    /* IEEE 1619, vectors 2 and 1 (the keys of the first are equal halves, which AES-XTS may not have). */
    cipher_is(fd, AES_XTS, "1111111111111111111111111111111122222222222222222222222222222222",
              "33333333330000000000000000000000", "4444444444444444444444444444444444444444444444444444444444444444",
              "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0");
    /* IEEE 1619, vector 10, its first 32 bytes. */
    cipher_is(fd, AES_XTS,
              "2718281828459045235360287471352662497757247093699959574966967627"
              "3141592653589793238462643383279502884197169399375105820974944592",
              "ff000000000000000000000000000000", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
              "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b");
    /* As openssl has 3DES with three keys, and with two: the third is the first again. */
    cipher_is(fd, TRIPLE_DES_CBC, "0123456789abcdef23456789abcdef01456789abcdef0123", "f69f2445df4f9b17",
              "54686520717566636b2062726f776e20666f78206a756d70", "a5c282bad0de3774becd2e04386b589fb5057d8552fc4336");
    cipher_is(fd, TRIPLE_DES_CBC, "0123456789abcdef23456789abcdef010123456789abcdef", "f69f2445df4f9b17",
              "54686520717566636b2062726f776e20666f78206a756d70", "acd5699dd6060a430dedd74525b7870297202cf5ed176718");
    cipher_is(fd, NULL_CIPHER, "00", IV, "0102030405", "0102030405");

    /* FIPS 180-4 and RFC 1321. */
    mac_is(fd, MD5, NULL, 0, "abc", 3, "900150983cd24fb0d6963f7d28e17f72");
    mac_is(fd, SHA1, NULL, 0, "abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
    mac_is(fd, SHA224, NULL, 0, "abc", 3, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
    mac_is(fd, SHA256, NULL, 0, "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    mac_is(fd, SHA384, NULL, 0, "abc", 3,
           "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7");
    mac_is(fd, SHA512, NULL, 0, "abc", 3,
           "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643c"
           "e80e2a9ac94fa54ca49f");
    mac_is(fd, SHA256, NULL, 0, "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

    /* RFC 2202 and RFC 4231, cases 2 and 6. */
    uint8_t key[131];
    static const char LONG[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char NOTHING[] = "what do ya want for nothing?";
    memset(key, 0xaa, sizeof key);
    mac_is(fd, SHA1_HMAC, "Jefe", 4, NOTHING, 28, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    mac_is(fd, SHA256_HMAC, "Jefe", 4, NOTHING, 28,
           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    mac_is(fd, SHA384_HMAC, "Jefe", 4, NOTHING, 28,
           "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649");
    mac_is(fd, SHA512_HMAC, "Jefe", 4, NOTHING, 28,
           "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a"
           "6b4b636e070a38bce737");
    mac_is(fd, SHA256_HMAC, key, sizeof key, LONG, 54,
           "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    CHECK(close(fd) == 0);
}

/* A cipher and a MAC in one session: the MAC is that of the text that is not encrypted, in both directions. */
static void chain(void) {
    int fd = device();
    uint8_t k[16], v[16], p[64], c[64], mac[32], again[32], alone[32];
    hex(KEY128, k), hex(IV, v), hex(PLAIN, p);
    uint32_t both = begin(fd, AES_CBC, k, 16, SHA256_HMAC, "Jefe", 4);
    uint32_t one = begin(fd, 0, NULL, 0, SHA256_HMAC, "Jefe", 4);
    CHECK(crypt_one(fd, both, ENCRYPT, p, 64, c, mac, v) == 0);
    is(c, CBC128);
    CHECK(crypt_one(fd, one, ENCRYPT, p, 64, NULL, alone, NULL) == 0);
    CHECK(memcmp(mac, alone, 32) == 0);
    CHECK(crypt_one(fd, both, DECRYPT, c, 64, c, again, v) == 0);
    is(c, PLAIN);
    CHECK(memcmp(mac, again, 32) == 0);

    /* An initialisation vector that is written over, or kept, goes on where the one before ended. */
    uint32_t ses = begin(fd, AES_CBC, k, 16, 0, NULL, 0);
    CHECK(crypt_flags(fd, ses, ENCRYPT, WRITE_IV, p, 32, c, NULL, v) == 0);
    CHECK(memcmp(v, c + 16, 16) == 0);
    CHECK(crypt_one(fd, ses, ENCRYPT, p + 32, 32, c + 32, NULL, NULL) == 0);
    is(c, CBC128);
    hex(IV, v);
    CHECK(crypt_flags(fd, ses, DECRYPT, WRITE_IV, c, 16, p, NULL, v) == 0);
    CHECK(memcmp(v, c, 16) == 0);
    CHECK(crypt_one(fd, ses, DECRYPT, c + 16, 48, p + 16, NULL, NULL) == 0);
    is(p, PLAIN);
    uint32_t counter = begin(fd, AES_CTR, k, 16, 0, NULL, 0);
    hex(COUNTER, v), hex(PLAIN, p);
    CHECK(crypt_flags(fd, counter, ENCRYPT, WRITE_IV, p, 17, c, NULL, v) == 0);
    is(v, "f0f1f2f3f4f5f6f7f8f9fafbfcfdff01");

    /* A message goes on in another session. */
    uint8_t first[32], second[32];
    uint32_t other = begin(fd, 0, NULL, 0, SHA256_HMAC, "Jefe", 4);
    struct cphash_op copy = { other, one };
    CHECK(crypt_flags(fd, one, ENCRYPT, UPDATE | RESET, "what do ya want ", 16, NULL, NULL, NULL) == 0);
    CHECK(ioctl(fd, CIOCCPHASH, &copy) == 0);
    CHECK(crypt_flags(fd, one, ENCRYPT, UPDATE | FINAL, "for nothing?", 12, NULL, first, NULL) == 0);
    CHECK(crypt_flags(fd, other, ENCRYPT, UPDATE | FINAL, "for nothing?", 12, NULL, second, NULL) == 0);
    is(first, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(memcmp(first, second, 32) == 0);

    /* McGrew and Viega's test case 4 of AES-GCM, with a tag behind the text. */
    uint8_t gcm[16], nonce[12], aad[20], text[60], sealed[76];
    hex("feffe9928665731c6d6a8f9467308308", gcm), hex("cafebabefacedbaddecaf888", nonce);
    hex("feedfacedeadbeeffeedfacedeadbeefabaddad2", aad);
    hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
        "ba637b39", text);
    uint32_t seal = begin(fd, AES_GCM, gcm, 16, 0, NULL, 0);
    struct crypt_auth_op op = { .ses = seal, .op = ENCRYPT, .len = 60, .auth_len = 20, .auth_src = aad, .src = text,
                                .dst = sealed, .iv = nonce, .iv_len = 12 };
    CHECK(ioctl(fd, CIOCAUTHCRYPT, &op) == 0);
    is(sealed, "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b39"
               "6a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47");
    CHECK(op.len == 76 && op.tag == sealed + 60 && op.tag_len == 16);
    op.op = DECRYPT, op.src = sealed, op.len = 76;
    CHECK(ioctl(fd, CIOCAUTHCRYPT, &op) == 0 && op.len == 60 && memcmp(sealed, text, 60) == 0);
    op.op = ENCRYPT, op.src = text;
    CHECK(ioctl(fd, CIOCAUTHCRYPT, &op) == 0);
    sealed[70] ^= 1;
    op.op = DECRYPT, op.src = sealed, op.len = 76;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EBADMSG);
    op.len = 15;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EINVAL);
    op.len = 76, op.tag_len = 17;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EINVAL);
    op.tag_len = 16, op.flags = 1 << 4;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EINVAL);
    op.flags = 0, op.iv = NULL;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EINVAL);
    REFUSED(crypt_one(fd, seal, ENCRYPT, text, 48, text, NULL, nonce), EINVAL);
    op.iv = nonce, op.ses = both;
    REFUSED(ioctl(fd, CIOCAUTHCRYPT, &op), EINVAL);
    CHECK(close(fd) == 0);
}

static void refusals(void) {
    int fd = device(), other = device();
    uint8_t k[64], v[16] = { 0 }, text[64] = { 0 }, mac[64], long_key[513] = { 0 };
    for (int at = 0; at < 64; at++) k[at] = at;
    REFUSED(refuse(fd, 0, NULL, 0, 0, NULL, 0), EINVAL);
    for (uint32_t bytes = 0; bytes <= 66; bytes++) {
        uint8_t key[66];
        for (int at = 0; at < 66; at++) key[at] = at;
        if (bytes != 16 && bytes != 24 && bytes != 32) {
            REFUSED(refuse(fd, AES_CBC, key, bytes, 0, NULL, 0), EINVAL);
        }
        if (bytes != 16 && bytes != 32) {
            REFUSED(refuse(fd, AES_CTR, key, bytes, 0, NULL, 0), EINVAL);
            REFUSED(refuse(fd, AES_GCM, key, bytes, 0, NULL, 0), EINVAL);
        }
        if (bytes != 32 && bytes != 64) REFUSED(refuse(fd, AES_XTS, key, bytes, 0, NULL, 0), EINVAL);
        if (bytes != 24) REFUSED(refuse(fd, TRIPLE_DES_CBC, key, bytes, 0, NULL, 0), EINVAL);
    }
    REFUSED(refuse(fd, AES_CBC, k, UINT32_MAX, 0, NULL, 0), EINVAL);
    REFUSED(refuse(fd, AES_CBC, NULL, 16, 0, NULL, 0), EFAULT);
    REFUSED(refuse(fd, 1, k, 8, 0, NULL, 0), EINVAL);
    REFUSED(refuse(fd, 9999, k, 16, 0, NULL, 0), EINVAL);
    REFUSED(refuse(fd, 0, NULL, 0, AES_CBC, k, 16), EINVAL);
    REFUSED(refuse(fd, SHA1, k, 16, 0, NULL, 0), EINVAL);
    REFUSED(refuse(fd, AES_CBC, k, 16, 8, k, 16), EINVAL);
    REFUSED(refuse(fd, 0, NULL, 0, SHA1_HMAC, long_key, 513), EINVAL);
    REFUSED(refuse(fd, 0, NULL, 0, SHA1_HMAC, NULL, 20), EFAULT);
    REFUSED(ioctl(fd, CIOCGSESSION, NULL), EFAULT);

    uint32_t cbc = begin(fd, AES_CBC, k, 16, 0, NULL, 0), xts = begin(fd, AES_XTS, k, 32, 0, NULL, 0);
    uint32_t sha = begin(fd, 0, NULL, 0, SHA256, NULL, 0), empty = begin(fd, 0, NULL, 0, SHA256_HMAC, NULL, 0);
    uint32_t most = begin(fd, 0, NULL, 0, SHA512_HMAC, long_key, 512);
    REFUSED(crypt_one(fd, cbc, ENCRYPT, text, 15, text, NULL, v), EINVAL);
    REFUSED(crypt_one(fd, xts, ENCRYPT, text, 33, text, NULL, v), EINVAL);
    REFUSED(crypt_one(fd, cbc, 2, text, 16, text, NULL, v), EINVAL);
    REFUSED(crypt_one(fd, cbc, ENCRYPT, NULL, 16, text, NULL, v), EFAULT);
    REFUSED(crypt_one(fd, cbc, ENCRYPT, text, 16, NULL, NULL, v), EFAULT);
    REFUSED(crypt_one(fd, sha, ENCRYPT, text, 16, NULL, NULL, NULL), EFAULT);
    REFUSED(crypt_one(fd, cbc, ENCRYPT, text, UINT32_MAX & ~15u, text, NULL, v), EINVAL);
    CHECK(crypt_one(fd, cbc, ENCRYPT, NULL, 0, NULL, NULL, v) == 0);
    CHECK(crypt_one(fd, sha, ENCRYPT, text, 16, NULL, mac, NULL) == 0);
    CHECK(crypt_one(fd, empty, ENCRYPT, text, 16, NULL, mac, NULL) == 0);
    CHECK(crypt_one(fd, most, ENCRYPT, text, 16, NULL, mac, NULL) == 0);

    /* Sessions that there are not: never, no more, or of another descriptor. */
    uint32_t theirs = begin(other, AES_CBC, k, 16, 0, NULL, 0), none = 123456789;
    REFUSED(crypt_one(fd, none, ENCRYPT, text, 16, text, NULL, v), EINVAL);
    REFUSED(crypt_one(fd, theirs, ENCRYPT, text, 16, text, NULL, v), EINVAL);
    REFUSED(ioctl(fd, CIOCFSESSION, &theirs), ENOENT);
    REFUSED(ioctl(fd, CIOCFSESSION, &none), ENOENT);
    CHECK(crypt_one(other, theirs, ENCRYPT, text, 16, text, NULL, v) == 0);
    CHECK(ioctl(fd, CIOCFSESSION, &cbc) == 0);
    REFUSED(crypt_one(fd, cbc, ENCRYPT, text, 16, text, NULL, v), EINVAL);
    REFUSED(ioctl(fd, CIOCFSESSION, &cbc), ENOENT);
    struct cphash_op copy = { sha, sha };
    REFUSED(ioctl(fd, CIOCCPHASH, &copy), EDEADLK);
    copy.src_ses = none;
    REFUSED(ioctl(fd, CIOCCPHASH, &copy), ENOENT);
    copy.src_ses = empty;
    REFUSED(ioctl(fd, CIOCCPHASH, &copy), EINVAL);

    /* What it says of itself. */
    struct session_info_op info = { .ses = xts };
    CHECK(ioctl(fd, CIOCGSESSINFO, &info) == 0);
    CHECK(strcmp(info.cipher_info.cra_name, "xts(aes)") == 0 && info.hash_info.cra_name[0] == 0);
    info.ses = none;
    REFUSED(ioctl(fd, CIOCGSESSINFO, &info), EINVAL);
    uint32_t features = 7;
    CHECK(ioctl(fd, CIOCASYMFEAT, &features) == 0 && features == 0);
    uint8_t numbers[152] = { 0 };
    REFUSED(ioctl(fd, CIOCKEY, numbers), EINVAL);
    REFUSED(ioctl(fd, _IO('c', 200), numbers), EINVAL);

    /* Other files are libc's. */
    struct { int rows; } window;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), pipes[2];
    CHECK(null >= 0 && pipe(pipes) == 0);
    REFUSED(ioctl(null, CIOCASYMFEAT, &features), ENOTTY);
    REFUSED(ioctl(pipes[0], CIOCASYMFEAT, &features), ENOTTY);
    REFUSED(ioctl(fd, TIOCGWINSZ, &window), ENOTTY);
    REFUSED(ioctl(-1, CIOCASYMFEAT, &features), EBADF);
    REFUSED(close(-1), EBADF);
    REFUSED(open("/dev/crypt", O_RDWR), ENOENT);
    int made = openat(AT_FDCWD, "made", O_CREAT | O_RDWR | O_EXCL, 0640);
    struct stat stat;
    CHECK(made >= 0 && fstat(made, &stat) == 0 && (stat.st_mode & 0777) == 0640);
    CHECK(unlink("made") == 0);
}

/* --- descriptors --- */

static int files(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) n++;
    closedir(folder);
    return n;
}

static void works(int fd, uint32_t ses) {
    uint8_t p[64], c[64], v[16];
    hex(PLAIN, p), hex(IV, v);
    CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, NULL, v) == 0);
    is(c, CBC128);
}

static void descriptors(void) {
    uint8_t k[16], v[16] = { 0 }, p[16] = { 0 };
    hex(KEY128, k);
    int before = files();
    int fd = device();
    /* The lowest number, as from any open; and closed by exec as it was asked for. */
    CHECK(fd == 3);
    CHECK(fcntl(fd, F_GETFD) == 0);
    int closed = openat(AT_FDCWD, "/dev/crypto", O_RDWR | O_CLOEXEC);
    CHECK(fcntl(closed, F_GETFD) == FD_CLOEXEC);
    CHECK(close(closed) == 0);

    uint32_t ses = begin(fd, AES_CBC, k, 16, 0, NULL, 0), copy;
    int second = dup(fd), third = fcntl(fd, F_DUPFD, 40);
    CHECK(ioctl(fd, CRIOGET, &copy) == 0 && fcntl(copy, F_GETFD) == 0);
    CHECK(dup2(fd, 50) == 50);
    works(second, ses), works(third, ses), works(copy, ses), works(50, ses);
    CHECK(close(fd) == 0);
    works(second, ses);
    CHECK(close(second) == 0 && close(third) == 0 && close(50) == 0);
    works(copy, ses);
    CHECK(close(copy) == 0);
    REFUSED(ioctl(copy, CIOCASYMFEAT, &copy), EBADF);

    /* What has its number next has not its sessions. */
    int next = device();
    REFUSED(crypt_one(next, ses, ENCRYPT, p, 16, p, NULL, v), EINVAL);
    uint32_t again = begin(next, AES_CBC, k, 16, 0, NULL, 0);
    works(next, again);
    /* Closed without close. */
    int null = open("/dev/null", O_RDONLY);
    CHECK(dup2(null, next) == next && close(null) == 0);
    REFUSED(ioctl(next, CIOCASYMFEAT, &copy), ENOTTY);
    CHECK(close(next) == 0);
    /* All is given back but the connection: a session on a fresh device, and closed again. */
    int opened = files();
    for (int round = 0; round < 300; round++) {
        int one = device();
        works(one, begin(one, AES_CBC, k, 16, 0, NULL, 0));
        CHECK(close(one) == 0);
        CHECK(files() <= opened);
    }
    CHECK(opened - before < 12);
}

/* A parent and its children, which use what they share at the same time. */
static void forks(void) {
    uint8_t k[16];
    hex(KEY128, k);
    int fd = device();
    uint32_t ses = begin(fd, AES_CBC, k, 16, SHA256_HMAC, "Jefe", 4);
    uint8_t p[64], c[64], v[16], mac[32];
    hex(PLAIN, p), hex(IV, v);
    CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, mac, v) == 0);
    pid_t children[4];
    for (int at = 0; at < 4; at++) {
        children[at] = fork();
        CHECK(children[at] >= 0);
        if (children[at] == 0) {
            for (int round = 0; round < 200; round++) {
                CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, mac, v) == 0);
                is(c, CBC128);
            }
            /* Its own, which its parent and siblings do not have; and a child of its own. */
            uint32_t own = begin(fd, AES_CBC, k, 16, 0, NULL, 0);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                works(fd, own);
                CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
                _exit(0);
            }
            int status;
            CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            works(fd, own);
            CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0 && close(fd) == 0);
            _exit(0);
        }
    }
    for (int round = 0; round < 200; round++) {
        CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, mac, v) == 0);
        is(c, CBC128);
    }
    for (int at = 0; at < 4; at++) {
        int status;
        CHECK(waitpid(children[at], &status, 0) == children[at] && status == 0);
    }
    CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, mac, v) == 0);
    /* A child that only closes what it has inherited takes nothing from its parent, however it was made. */
    for (int round = 0; round < 2; round++) {
        pid_t child = round == 0 ? fork() : vfork();
        if (child == 0) {
            close(fd);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(crypt_one(fd, ses, ENCRYPT, p, 64, c, mac, v) == 0);
    }
    CHECK(close(fd) == 0);
}

/* --- threads --- */

static int shared;
static uint32_t common;

static void *thread(void *argument) {
    uint8_t k[16];
    (void)argument;
    hex(KEY128, k);
    for (int round = 0; round < 100; round++) {
        int fd = device();
        uint32_t ses = begin(fd, AES_CBC, k, 16, 0, NULL, 0);
        works(fd, ses);
        works(shared, common);
        CHECK(round % 2 == 0 || ioctl(fd, CIOCFSESSION, &ses) == 0);
        CHECK(close(fd) == 0);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[6];
    uint8_t k[16];
    hex(KEY128, k);
    shared = device();
    common = begin(shared, AES_CBC, k, 16, 0, NULL, 0);
    for (int at = 0; at < 6; at++) CHECK(pthread_create(&all[at], NULL, thread, NULL) == 0);
    for (int at = 0; at < 6; at++) CHECK(pthread_join(all[at], NULL) == 0);
    CHECK(close(shared) == 0);
}

/* --- under a test's hand --- */

/* Answers each line with 0, a number, or why it could not be done. */
static void serve(void) {
    char line[64];
    uint8_t k[16], v[16], mac[32];
    int fd = -1;
    uint32_t kept = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strcmp(line, "open\n") == 0) {
            fd = open("/dev/crypto", O_RDWR);
            printf("%d\n", fd < 0 ? errno : 0);
        } else if (strcmp(line, "close\n") == 0) {
            printf("%d\n", close(fd) < 0 ? errno : 0);
        } else if (strcmp(line, "files\n") == 0) {
            printf("%d\n", files());
        } else if (strcmp(line, "keep\n") == 0) {
            hex(KEY128, k);
            struct session_op session = { AES_CBC, SHA256_HMAC, 16, k, 4, (const uint8_t *)"Jefe", 0 };
            printf("%d\n", ioctl(fd, CIOCGSESSION, &session) < 0 ? errno : 0);
            kept = session.ses;
        } else if (strcmp(line, "use\n") == 0) {
            uint8_t p[64], c[64];
            hex(PLAIN, p), hex(IV, v);
            int why = crypt_one(fd, kept, ENCRYPT, p, 64, c, mac, v) < 0 ? errno : 0;
            if (why == 0) is(c, CBC128);
            printf("%d\n", why);
        } else {
            CHECK(!"a line");
        }
        fflush(stdout);
    }
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *what = arguments[1];
    if (strcmp(what, "answers") == 0) answers();
    else if (strcmp(what, "chain") == 0) chain();
    else if (strcmp(what, "refusals") == 0) refusals();
    else if (strcmp(what, "descriptors") == 0) descriptors();
    else if (strcmp(what, "forks") == 0) forks();
    else if (strcmp(what, "threads") == 0) threads();
    else if (strcmp(what, "serve") == 0) serve();
    else CHECK(!"known");
    return 0;
}
