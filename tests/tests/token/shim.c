// A PKCS#11 module before another one: it counts logins and signatures, and fails as the file `state` beside it says.
// `gone`: its device was pulled out. `hang`: no signature comes back as long as the file says so. `wrong`: signatures are.
// `end`: the process ends in a login. `stay`: C_Finalize does not return. `deaf`: logins and new keys do not come.
// `lost NUMBER`: the next signature is answered with that error, once. `fails NUMBER`: all are.

#include <dlfcn.h>
#include <p11-kit/pkcs11.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CK_FUNCTION_LIST own, *real;
static char folder[4096];

static const char *file(char *buffer, const char *name) {
    snprintf(buffer, 8192, "%s/%s", folder, name);
    return buffer;
}

static int state_is(const char *wanted) {
    char path[8192], text[16] = {0};
    FILE *state = fopen(file(path, "state"), "r");
    if (state == NULL) return 0;
    size_t read = fread(text, 1, sizeof text - 1, state);
    fclose(state);
    return read > 0 && strcmp(text, wanted) == 0;
}

static void note(const char *name) {
    char path[8192];
    FILE *noted = fopen(file(path, name), "a");
    if (noted != NULL) {
        fputc('.', noted);
        fclose(noted);
    }
}

static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG length, CK_BYTE_PTR out, CK_ULONG_PTR used) {
    while (state_is("hang")) usleep(5000);
    if (out != NULL) note("signatures");
    if (state_is("gone")) return CKR_DEVICE_REMOVED;
    CK_RV result = real->C_Sign(session, data, length, out, used);
    if (result == CKR_OK && out != NULL && state_is("wrong")) out[*used / 2] ^= 1;
    return result;
}

static unsigned long number_of(const char *state) {
    char path[8192], word[16];
    unsigned long number = 0;
    FILE *file_of = fopen(file(path, "state"), "r");
    if (file_of == NULL) return 0;
    if (fscanf(file_of, "%15s %li", word, &number) != 2 || strcmp(word, state) != 0) number = 0;
    fclose(file_of);
    return number;
}

static CK_RV sign_init(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key) {
    char path[8192];
    unsigned long lost = number_of("lost"), fails = number_of("fails");
    if (lost != 0 && unlink(file(path, "state")) == 0) return lost;
    return fails != 0 ? fails : real->C_SignInit(session, mechanism, key);
}

static CK_RV finalize(void *reserved) {
    while (state_is("stay")) usleep(5000);
    return real->C_Finalize(reserved);
}

// Says that it was asked, and answers no sooner than it may.
static void be_deaf(void) {
    if (state_is("deaf")) note("deaf");
    while (state_is("deaf")) usleep(5000);
}

static CK_RV generate(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_ATTRIBUTE_PTR public, CK_ULONG publics,
                      CK_ATTRIBUTE_PTR private, CK_ULONG privates, CK_OBJECT_HANDLE_PTR half,
                      CK_OBJECT_HANDLE_PTR key) {
    be_deaf();
    return real->C_GenerateKeyPair(session, mechanism, public, publics, private, privates, half, key);
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *application, CK_NOTIFY notify,
                          CK_SESSION_HANDLE_PTR session) {
    return state_is("gone") ? CKR_TOKEN_NOT_PRESENT : real->C_OpenSession(slot, flags, application, notify, session);
}

static CK_RV login(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_BYTE_PTR pin, CK_ULONG length) {
    note("logins");
    if (state_is("end")) _exit(1);
    be_deaf();
    return real->C_Login(session, user, pin, length);
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list) {
    Dl_info info;
    if (dladdr((void *)&C_GetFunctionList, &info) == 0) return CKR_GENERAL_ERROR;
    snprintf(folder, sizeof folder, "%s", info.dli_fname);
    *strrchr(folder, '/') = 0;
    char path[8192];
    void *library = dlopen(file(path, "real.so"), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return CKR_GENERAL_ERROR;
    CK_C_GetFunctionList get = (CK_C_GetFunctionList)dlsym(library, "C_GetFunctionList");
    if (get == NULL || get(&real) != CKR_OK) return CKR_GENERAL_ERROR;
    own = *real;
    own.C_Sign = sign;
    own.C_OpenSession = open_session;
    own.C_Login = login;
    own.C_SignInit = sign_init;
    own.C_Finalize = finalize;
    own.C_GenerateKeyPair = generate;
    *list = &own;
    return CKR_OK;
}
