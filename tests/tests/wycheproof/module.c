/* A program of a PKCS #11 module's that does what its input says, a line an answer:
     load NAME                             looks for a key's halves
     verify HASH pkcs1|pss|- SALT MGF1 MESSAGE SIGNATURE
     decrypt pkcs1|oaep HASH MGF1 LABEL CIPHERTEXT
     derive POINT                          agrees with a peer on a secret
   Bytes are in hexadecimal, and "-" is nothing. The answer is "no", "yes", or the bytes behind "yes ". Its argument
   is the module. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <p11-kit/pkcs11.h>

struct bytes {
    unsigned char *start;
    CK_ULONG length;
};

static struct bytes bytes(const char *text) {
    struct bytes all = {calloc(strlen(text) / 2 + 1, 1), 0};
    unsigned value;
    if (strcmp(text, "-") != 0)
        for (; sscanf(text, "%2x", &value) == 1; text += 2) all.start[all.length++] = value;
    return all;
}

static void say(int done, const unsigned char *start, CK_ULONG length) {
    printf(done ? length ? "yes " : "yes -" : "no");
    for (CK_ULONG at = 0; done && at < length; at++) printf("%02x", start[at]);
    puts("");
}

static const struct {
    const char *name;
    CK_MECHANISM_TYPE hash;
    CK_RSA_PKCS_MGF_TYPE mgf1;
    CK_MECHANISM_TYPE pkcs1, pss, ecdsa;
} HASHES[] = {
    {"SHA1", CKM_SHA_1, CKG_MGF1_SHA1, CKM_SHA1_RSA_PKCS, CKM_SHA1_RSA_PKCS_PSS, CKM_ECDSA_SHA1},
    {"SHA224", CKM_SHA224, CKG_MGF1_SHA224, CKM_SHA224_RSA_PKCS, CKM_SHA224_RSA_PKCS_PSS, CKM_ECDSA_SHA224},
    {"SHA256", CKM_SHA256, CKG_MGF1_SHA256, CKM_SHA256_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_ECDSA_SHA256},
    {"SHA384", CKM_SHA384, CKG_MGF1_SHA384, CKM_SHA384_RSA_PKCS, CKM_SHA384_RSA_PKCS_PSS, CKM_ECDSA_SHA384},
    {"SHA512", CKM_SHA512, CKG_MGF1_SHA512, CKM_SHA512_RSA_PKCS, CKM_SHA512_RSA_PKCS_PSS, CKM_ECDSA_SHA512}};

static int named(const char *name) {
    for (int at = 0; at < 5; at++)
        if (strcmp(HASHES[at].name, name) == 0) return at;
    return 0;
}

static CK_FUNCTION_LIST *p11;
static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE private, public;

static CK_OBJECT_HANDLE find(CK_OBJECT_CLASS class, const char *label) {
    CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_LABEL, (void *)label, strlen(label)}};
    CK_OBJECT_HANDLE found = 0;
    CK_ULONG count = 0;
    int done = p11->C_FindObjectsInit(session, template, 2) == CKR_OK
        && p11->C_FindObjects(session, &found, 1, &count) == CKR_OK && count == 1;
    p11->C_FindObjectsFinal(session);
    return done ? found : 0;
}

/* The answer "no" is that of a signature that is wrong; another one is printed. */
static void verify(const char *hash, const char *padding, CK_ULONG salt, int mgf1, struct bytes text,
                   struct bytes signature) {
    int at = named(hash);
    CK_RSA_PKCS_PSS_PARAMS pss = {HASHES[at].hash, HASHES[mgf1].mgf1, salt};
    CK_MECHANISM how = {HASHES[at].ecdsa, NULL, 0};
    if (strcmp(hash, "-") == 0) how.mechanism = CKM_EDDSA;
    else if (strcmp(padding, "pkcs1") == 0) how.mechanism = HASHES[at].pkcs1;
    else if (strcmp(padding, "pss") == 0)
        how = (CK_MECHANISM){HASHES[at].pss, &pss, sizeof pss};
    CK_RV rv = p11->C_VerifyInit(session, &how, public);
    if (rv == CKR_OK) rv = p11->C_Verify(session, text.start, text.length, signature.start, signature.length);
    if (rv == CKR_SIGNATURE_INVALID || rv == CKR_SIGNATURE_LEN_RANGE) puts("no");
    else printf("yes %#lx\n", rv);
}

static void decrypt(const char *padding, int hash, int mgf1, struct bytes label, struct bytes text) {
    CK_RSA_PKCS_OAEP_PARAMS oaep = {HASHES[hash].hash, HASHES[mgf1].mgf1, CKZ_DATA_SPECIFIED, label.start,
                                    label.length};
    CK_MECHANISM by_oaep = {CKM_RSA_PKCS_OAEP, &oaep, sizeof oaep}, by_pkcs1 = {CKM_RSA_PKCS, NULL, 0};
    unsigned char out[2048];
    CK_ULONG length = sizeof out;
    int done = p11->C_DecryptInit(session, strcmp(padding, "oaep") == 0 ? &by_oaep : &by_pkcs1, private) == CKR_OK
        && p11->C_Decrypt(session, text.start, text.length, out, &length) == CKR_OK;
    say(done, out, length);
}

static void derive(struct bytes point) {
    CK_ECDH1_DERIVE_PARAMS ecdh = {CKD_NULL, 0, NULL, point.length, point.start};
    CK_MECHANISM how = {CKM_ECDH1_DERIVE, &ecdh, sizeof ecdh};
    CK_OBJECT_CLASS class = CKO_SECRET_KEY;
    CK_KEY_TYPE type = CKK_GENERIC_SECRET;
    CK_BBOOL no = CK_FALSE, yes = CK_TRUE;
    unsigned char secret[66];
    CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
                               {CKA_SENSITIVE, &no, 1},           {CKA_EXTRACTABLE, &yes, 1}},
                 value = {CKA_VALUE, secret, sizeof secret};
    CK_OBJECT_HANDLE derived = 0;
    int done = p11->C_DeriveKey(session, &how, private, template, 4, &derived) == CKR_OK
        && p11->C_GetAttributeValue(session, derived, &value, 1) == CKR_OK
        && p11->C_DestroyObject(session, derived) == CKR_OK;
    say(done, secret, value.ulValueLen);
}

int main(int count, char **arguments) {
    static char line[1 << 20];
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    CK_C_GetFunctionList list = library ? (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList") : NULL;
    if (!list || list(&p11) != CKR_OK || p11->C_Initialize(NULL) != CKR_OK
        || p11->C_OpenSession(1, CKF_SERIAL_SESSION, NULL, NULL, &session) != CKR_OK)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        char *word[8] = {0};
        int words = 0;
        for (char *next = strtok(line, " \n"); next && words < 8; next = strtok(NULL, " \n")) word[words++] = next;
        if (words == 2 && strcmp(word[0], "load") == 0) {
            private = find(CKO_PRIVATE_KEY, word[1]);
            public = find(CKO_PUBLIC_KEY, word[1]);
            puts(private && public ? "yes" : "no");
        } else if (words == 7 && strcmp(word[0], "verify") == 0) {
            struct bytes text = bytes(word[5]), signature = bytes(word[6]);
            verify(word[1], word[2], atoi(word[3]), named(word[4]), text, signature);
            free(text.start);
            free(signature.start);
        } else if (words == 6 && strcmp(word[0], "decrypt") == 0) {
            struct bytes label = bytes(word[4]), text = bytes(word[5]);
            decrypt(word[1], named(word[2]), named(word[3]), label, text);
            free(label.start);
            free(text.start);
        } else if (words == 2 && strcmp(word[0], "derive") == 0) {
            struct bytes point = bytes(word[1]);
            derive(point);
            free(point.start);
        } else {
            return 2;
        }
    }
    return p11->C_Finalize(NULL) == CKR_OK ? 0 : 3;
}
