/* TLS handshakes in memory, of a server whose keys are cryptod's; every hundredth is cut off in its middle.
   Each second is an asynchronous job of OpenSSL's, with its small stack.
   Usage: handshakes COUNT CERTIFICATE KEY ... in a folder with these files. */
#include <openssl/async.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    ERR_print_errors_fp(stderr);
    return 1;
}

/* Hands the bytes of one end to the other. */
static void pass(BIO *from, BIO *to) {
    char buffer[4096];
    int length;
    while ((length = BIO_read(from, buffer, sizeof buffer)) > 0) BIO_write(to, buffer, length);
}

static SSL *end(SSL_CTX *context, int is_server) {
    SSL *ssl = SSL_new(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_server) SSL_set_accept_state(ssl);
    else SSL_set_connect_state(ssl);
    return ssl;
}

static int shake(SSL_CTX *serving, SSL_CTX *asking, int is_cut_off) {
    SSL *server = end(serving, 1), *client = end(asking, 0);
    int done = 0;
    for (int round = 0; round < 10 && !done; round++) {
        SSL_do_handshake(client);
        pass(SSL_get_wbio(client), SSL_get_rbio(server));
        SSL_do_handshake(server);
        if (is_cut_off) break;
        pass(SSL_get_wbio(server), SSL_get_rbio(client));
        done = SSL_is_init_finished(server) && SSL_is_init_finished(client);
    }
    done = done && SSL_get_verify_result(client) == X509_V_OK;
    SSL_free(server);
    SSL_free(client);
    return done || is_cut_off;
}

int main(int count, char **arguments) {
    int rounds = count > 1 ? atoi(arguments[1]) : 0;
    for (int round = 0; round < rounds;) {
        for (int at = 2; at + 1 < count; at += 2) {
            SSL_CTX *serving = SSL_CTX_new(TLS_server_method()), *asking = SSL_CTX_new(TLS_client_method());
            SSL_CTX_set_verify(asking, SSL_VERIFY_PEER, NULL);
            if (SSL_CTX_use_certificate_chain_file(serving, arguments[at]) != 1
                || SSL_CTX_use_PrivateKey_file(serving, arguments[at + 1], SSL_FILETYPE_PEM) != 1
                || SSL_CTX_check_private_key(serving) != 1
                || SSL_CTX_load_verify_locations(asking, arguments[at], NULL) != 1)
                return fail(arguments[at + 1]);
            for (int end = round + 50; round < end && round < rounds; round++) {
                SSL_CTX_set_max_proto_version(serving, round % 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
                if (round / 2 % 2 == 0) SSL_CTX_set_mode(serving, SSL_MODE_ASYNC);
                else SSL_CTX_clear_mode(serving, SSL_MODE_ASYNC);
                if (!shake(serving, asking, round % 100 == 99)) return fail("a handshake fails");
                ERR_clear_error();
            }
            SSL_CTX_free(serving);
            SSL_CTX_free(asking);
        }
    }
    /* Each has ended its job. */
    return ASYNC_get_current_job() ? fail("a job is left") : 0;
}
