import java.security.*;
import java.security.cert.*;
import java.security.spec.*;
import java.util.*;
import java.util.concurrent.*;
import javax.crypto.Cipher;

/** A program of Java that finds the keys of a token, and signs, decrypts and verifies with the certificates. */
public class Pkcs11 {
    public static void main(String[] arguments) throws Exception {
        Provider provider = Security.getProvider("SunPKCS11").configure(arguments[0]);
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
            System.out.println(alias + " " + key.getAlgorithm() + " " + chain.length);
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
