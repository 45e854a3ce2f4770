import java.security.*;
import java.security.cert.*;
import java.security.spec.*;
import java.util.*;
import java.util.concurrent.*;
import javax.crypto.Cipher;
import javax.net.ssl.*;

/** A program of Java that finds the keys of a token, and signs, decrypts and verifies with the certificates. */
public class Pkcs11 {
    public static void main(String[] arguments) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(arguments[0]);
        // TLS looks among the registered ones for one that takes the key.
        Security.addProvider(provider);
        KeyStore store = KeyStore.getInstance("PKCS11", provider);
        store.load(null, null);
        List<String> aliases = new ArrayList<>(Collections.list(store.aliases()));
        Collections.sort(aliases);
        for (String alias : aliases) {
            if (!store.isKeyEntry(alias)) {
                continue;
            }
            PrivateKey key = (PrivateKey) store.getKey(alias, null);
            java.security.cert.Certificate[] chain = store.getCertificateChain(alias);
            if (key.getEncoded() != null) {
                throw new Exception("the private key is there");
            }
            boolean isRsa = key.getAlgorithm().equals("RSA");
            String[] all = isRsa
                ? new String[] {"SHA1withRSA", "SHA224withRSA", "SHA256withRSA", "SHA384withRSA", "SHA512withRSA", "RSASSA-PSS"}
                : new String[] {"NONEwithECDSA", "SHA1withECDSA", "SHA256withECDSA", "SHA384withECDSA", "SHA512withECDSA"};
            for (String name : all) {
                sign(provider, name, key, chain[0].getPublicKey());
            }
            ExecutorService threads = Executors.newFixedThreadPool(8);
            List<Future<?>> done = new ArrayList<>();
            for (int i = 0; i < 64; i++) {
                done.add(threads.submit(() -> {
                    sign(provider, isRsa ? "SHA256withRSA" : "SHA256withECDSA", key, chain[0].getPublicKey());
                    return null;
                }));
            }
            for (Future<?> one : done) {
                one.get();
            }
            threads.shutdown();
            if (isRsa) {
                Cipher cipher = Cipher.getInstance("RSA/ECB/PKCS1Padding");
                cipher.init(Cipher.ENCRYPT_MODE, chain[0].getPublicKey());
                byte[] sealed = cipher.doFinal("a text".getBytes());
                cipher = Cipher.getInstance("RSA/ECB/PKCS1Padding", provider);
                cipher.init(Cipher.DECRYPT_MODE, key);
                if (!new String(cipher.doFinal(sealed)).equals("a text")) {
                    throw new Exception("another text");
                }
            }
            for (String version : new String[] {"TLSv1.2", "TLSv1.3"}) {
                shake(store, alias, version, key.getAlgorithm());
            }
            System.out.println(alias + " " + key.getAlgorithm() + " " + chain.length);
        }
    }

    /** A handshake of a server and a client that both have the key, each with the other's certificate in its trust. */
    static void shake(KeyStore store, String alias, String version, String type) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        java.security.cert.Certificate[] chain = store.getCertificateChain(alias);
        trusted.setCertificateEntry("authority", chain[chain.length - 1]);
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance(version);
        KeyManager own = new OneKey(store, alias);
        context.init(new KeyManager[] {own}, trust.getTrustManagers(), null);
        SSLServerSocket listening = (SSLServerSocket) context.getServerSocketFactory()
            .createServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress());
        listening.setEnabledProtocols(new String[] {version});
        listening.setNeedClientAuth(true);
        FutureTask<Integer> served = new FutureTask<>(() -> {
            try (SSLSocket socket = (SSLSocket) listening.accept()) {
                socket.getOutputStream().write(7);
                return socket.getInputStream().read();
            }
        });
        new Thread(served).start();
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory()
                .createSocket(listening.getInetAddress(), listening.getLocalPort())) {
            socket.getOutputStream().write(8);
            if (socket.getInputStream().read() != 7 || served.get() != 8) {
                throw new Exception("other bytes");
            }
            if (!socket.getSession().getPeerCertificates()[0].equals(chain[0])) {
                throw new Exception("another certificate");
            }
            System.out.println("    " + version + " " + socket.getSession().getCipherSuite());
        }
        listening.close();
    }

    /** Chooses one key of the store. */
    static class OneKey extends X509ExtendedKeyManager {
        private final KeyStore store;
        private final String alias;

        OneKey(KeyStore store, String alias) {
            this.store = store;
            this.alias = alias;
        }

        public String[] getClientAliases(String type, Principal[] issuers) {
            return new String[] {alias};
        }

        public String chooseClientAlias(String[] types, Principal[] issuers, java.net.Socket socket) {
            return alias;
        }

        public String[] getServerAliases(String type, Principal[] issuers) {
            return new String[] {alias};
        }

        public String chooseServerAlias(String type, Principal[] issuers, java.net.Socket socket) {
            return alias;
        }

        public X509Certificate[] getCertificateChain(String alias) {
            try {
                java.security.cert.Certificate[] chain = store.getCertificateChain(alias);
                return Arrays.copyOf(chain, chain.length, X509Certificate[].class);
            } catch (KeyStoreException why) {
                throw new IllegalStateException(why);
            }
        }

        public PrivateKey getPrivateKey(String alias) {
            try {
                return (PrivateKey) store.getKey(alias, null);
            } catch (GeneralSecurityException why) {
                throw new IllegalStateException(why);
            }
        }
    }

    static void sign(Provider provider, String name, PrivateKey key, PublicKey publicKey) throws Exception {
        byte[] text = new byte[32];
        text[0] = 7;
        Signature signature = Signature.getInstance(name, provider);
        Signature stock = Signature.getInstance(name);
        if (name.equals("RSASSA-PSS")) {
            PSSParameterSpec pss = new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1);
            signature.setParameter(pss);
            stock.setParameter(pss);
        }
        signature.initSign(key);
        signature.update(text);
        byte[] signed = signature.sign();
        stock.initVerify(publicKey);
        stock.update(text);
        if (!stock.verify(signed)) {
            throw new Exception(name + " is wrong");
        }
        System.out.println("    " + name);
    }
}
